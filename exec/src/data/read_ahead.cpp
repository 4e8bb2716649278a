#include "pipewright/exec/data/read_ahead.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "cpu/unpinned_thread.hpp"
#include "pipewright/exec/log.hpp"

namespace pipewright::exec {

ReadData read(const Reading& what) {
  log(LogSubject::Data, LogLevel::Debug, "reads{}{} of microbatch {} of step {}",
      what.inputs ? " inputs" : "", what.targets ? " targets" : "", what.microbatch, what.step);
  ReadData data;
  if (what.inputs)
    data.inputs = what.data->inputs(what.step, what.microbatch);
  if (what.targets) {
    data.targets = what.data->targets(what.step, what.microbatch);
    data.weight = what.data->weight(what.step, what.microbatch);
  }
  return data;
}

ReadAhead::ReadAhead(int ahead, std::function<void()> begin)
    : ahead_(static_cast<std::size_t>(ahead)), begin_(std::move(begin)) {}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable())
    thread_.join();
}

bool ReadAhead::begins(const std::vector<Reading>& what) const {
  return expected_.size() <= what.size() &&
         std::equal(expected_.begin(), expected_.end(), what.begin());
}

void ReadAhead::expect(std::vector<Reading> what) {
  if (ahead_ == 0 || what.empty())
    return;
  if (!begins(what))  // only the calling thread changes `expected_`
    stop();
  {
    const std::lock_guard lock(mutex_);
    expected_.assign(what.begin(), what.end());
  }
  changed_.notify_all();
  if (!thread_.joinable())
    thread_ = unpinned_thread([this] { serve(); });
}

ReadData ReadAhead::take(const Reading& what) {
  if (ahead_ == 0)
    return read(what);
  ReadData next;
  {
    std::unique_lock lock(mutex_);
    if (expected_.empty() || expected_.front() != what)
      throw std::logic_error(fmt::format("microbatch {} of step {} was requested out of order",
                                         what.microbatch, what.step));
    changed_.wait(lock, [&] { return !done_.empty(); });
    if (done_.front().failure)
      std::rethrow_exception(done_.front().failure);
    next = std::move(done_.front().data);
    done_.pop_front();
    expected_.pop_front();
  }
  changed_.notify_all();
  for (const Tensors* const tensors : {&next.inputs, &next.targets})
    for (const at::Tensor& tensor : *tensors)
      take_charge_of(tensor, account_);
  return next;
}

void ReadAhead::stop() {
  std::unique_lock lock(mutex_);
  expected_.clear();
  changed_.wait(lock, [&] { return !reading_; });
  done_.clear();
}

/// Returns false when enough is read, or after a read that failed.
bool ReadAhead::may_read() const {
  return done_.size() < std::min(ahead_, expected_.size()) &&
         (done_.empty() || !done_.back().failure);
}

void ReadAhead::serve() {
  if (begin_)
    begin_();
  const ChargeTo charge(account_);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return finished_ || may_read(); });
    if (finished_)
      return;
    const Reading next = expected_[done_.size()];
    reading_ = true;
    lock.unlock();
    Result result;
    try {
      result.data = read(next);
    } catch (...) {
      result.failure = std::current_exception();
    }
    lock.lock();
    reading_ = false;
    done_.push_back(std::move(result));
    changed_.notify_all();
  }
}

}  // namespace pipewright::exec
