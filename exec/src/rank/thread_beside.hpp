#pragma once

// A thread beside a rank's own, which does what it is given one after the other. A rank has one for
// its collectives, which do not hold up compute, and one for the second action of a fused pair.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace pipewright::exec {

class ThreadBeside {
 public:
  ThreadBeside() = default;
  ~ThreadBeside();
  ThreadBeside(const ThreadBeside&) = delete;
  ThreadBeside& operator=(const ThreadBeside&) = delete;

  /// Starts the thread with the first one. Returns which one it is, counted from 1.
  std::int64_t submit(std::function<void()> work);
  /// Returns when that one is done, and all before it; throws what one of them threw.
  void wait_for(std::int64_t number);
  /// Returns when all that were submitted are done; throws what one of them threw.
  void drain();
  /// The same, but what they threw is forgotten.
  void finish() noexcept;

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
