#include "background_thread.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <utility>

#include "pipewright/exec/cpu/core.hpp"

namespace pipewright::exec {

BackgroundThread::~BackgroundThread() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable())
    thread_.join();
}

std::int64_t BackgroundThread::submit(std::function<void()> work) {
  std::int64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
    number = ++submitted_;
  }
  if (!thread_.joinable())
    thread_ = std::thread([this] { serve(); });
  changed_.notify_all();
  return number;
}

void BackgroundThread::drain() { wait_for(submitted_); }

void BackgroundThread::finish() noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= submitted_; });
  failure_ = nullptr;
}

void BackgroundThread::wait_for(std::int64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number; });
  if (failure_)
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

void BackgroundThread::serve() {
  at::set_num_threads(1);
  run_in_short_slices();  // it waits for data again and again
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return finished_ || !waiting_.empty(); });
    if (waiting_.empty())
      return;
    const auto work = waiting_.front();
    const bool skip = failure_ != nullptr;
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (!skip)
        work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure)
      failure_ = failure;
    waiting_.pop_front();
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace pipewright::exec
