#pragma once

// A background thread of a rank, which runs tasks one after the other. A rank has one for its
// collectives, which do not block compute, and one for the second action of a fused pair.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace pipewright::exec {

class BackgroundThread {
 public:
  BackgroundThread() = default;
  ~BackgroundThread();
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  /// Queues a task, and starts the thread with the first one. Returns the task's number, counted
  /// from 1.
  std::int64_t submit(std::function<void()> work);
  /// Blocks until that task and all before it are done; throws what one of them threw.
  void wait_for(std::int64_t number);
  /// Blocks until all submitted tasks are done; throws what one of them threw.
  void drain();
  /// Blocks until all submitted tasks are done, and ignores what they threw.
  void finish() noexcept;

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;  // the first one is running
  std::int64_t submitted_ = 0, done_ = 0;
  std::exception_ptr failure_;
  bool finished_ = false;
  std::thread thread_;
};

}  // namespace pipewright::exec
