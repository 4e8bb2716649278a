#pragma once

// Collectives do not hold up compute: a rank that reaches one goes on, and the sums are made beside
// its compute by a thread of their own, one after the other in the order of the Program.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace pipewright::exec {

class CollectiveThread {
 public:
  CollectiveThread() = default;
  ~CollectiveThread();
  CollectiveThread(const CollectiveThread&) = delete;
  CollectiveThread& operator=(const CollectiveThread&) = delete;

  /// Starts the thread with the first one. Returns which one it is, counted from 1.
  std::int64_t submit(std::function<void()> reduction);
  /// Returns when that one is done, and all before it; throws what one of them threw.
  void wait_for(std::int64_t number);
  /// Returns when all that were submitted are done; throws what one of them threw.
  void drain();

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;  // the first one is at work
  std::int64_t submitted_ = 0, done_ = 0;
  std::exception_ptr failure_;
  bool finished_ = false;
  std::thread thread_;
};

}  // namespace pipewright::exec
