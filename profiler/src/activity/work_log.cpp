#include "pipewright/profiler/activity/work_log.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace pipewright::profiler {

void WorkLog::begin(int rank, const plan::Instruction& instruction, int layer) {
  std::uint64_t label = 0;
  bool was_open = false;
  {
    const std::lock_guard lock(mutex_);
    if (!is_on_)
      return;
    auto& open = open_[std::this_thread::get_id()];
    was_open = open.has_value();
    const Nanoseconds now = source_.now();
    close(open, now);
    label = ++last_label_;
    open = WorkRange{label, rank, instruction, layer, now, now};
  }
  // Labels are the thread's own, so nobody else waits for this.
  if (was_open)
    source_.close();
  source_.open(label);
}

void WorkLog::end() {
  {
    const std::lock_guard lock(mutex_);
    auto& open = open_[std::this_thread::get_id()];
    if (!open)
      return;
    close(open, source_.now());
  }
  source_.close();
}

void WorkLog::end_all() {
  const std::lock_guard lock(mutex_);
  const Nanoseconds now = source_.now();
  for (auto& [thread, open] : open_)
    close(open, now);
}

void WorkLog::close(std::optional<WorkRange>& open, Nanoseconds now) {
  if (!open)
    return;
  open->end = now;
  done_.push_back(*std::exchange(open, std::nullopt));
}

void WorkLog::start() {
  source_.start();
  const std::lock_guard lock(mutex_);
  is_on_ = true;
}

void WorkLog::stop() {
  end_all();
  {
    const std::lock_guard lock(mutex_);
    is_on_ = false;
  }
  source_.stop();
}

std::vector<WorkRange> WorkLog::take() {
  const std::lock_guard lock(mutex_);
  std::sort(done_.begin(), done_.end(), [](const WorkRange& a, const WorkRange& b) {
    return std::tie(a.rank, a.start, a.label) < std::tie(b.rank, b.start, b.label);
  });
  return std::exchange(done_, {});
}

}  // namespace pipewright::profiler
