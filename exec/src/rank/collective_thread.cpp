#include "collective_thread.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <utility>

#include "pipewright/exec/cpu/core.hpp"

namespace pipewright::exec {

CollectiveThread::~CollectiveThread() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable())
    thread_.join();
}

std::int64_t CollectiveThread::submit(std::function<void()> reduction) {
  std::int64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(reduction));
    number = ++submitted_;
  }
  if (!thread_.joinable())
    thread_ = std::thread([this] { serve(); });
  changed_.notify_all();
  return number;
}

void CollectiveThread::drain() { wait_for(submitted_); }

void CollectiveThread::wait_for(std::int64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number; });
  if (failure_)
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

void CollectiveThread::serve() {
  at::set_num_threads(1);
  run_in_short_slices();  // a sum waits for data again and again
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return finished_ || !waiting_.empty(); });
    if (waiting_.empty())
      return;
    const auto reduction = waiting_.front();
    const bool skip = failure_ != nullptr;
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (!skip)
        reduction();
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
