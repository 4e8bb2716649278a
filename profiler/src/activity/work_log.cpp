#include "pipewright/profiler/activity/work_log.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace pipewright::profiler {

void WorkLog::begin(int rank, const plan::Instruction& instruction, int layer) {
  std::uint64_t label = 0;
  bool was_labeled = false;
  {
    const std::lock_guard lock(mutex_);
    if (!is_on_)
      return;
    Thread& thread = threads_[std::this_thread::get_id()];
    const Nanoseconds now = source_.now();
    close(thread, now);
    label = ++last_label_;
    thread.at = WorkRange{label, rank, instruction, layer, now, now};
    was_labeled = std::exchange(thread.is_labeled, true);
  }
  // Labels belong to the thread, so this needs no lock.
  if (was_labeled)
    source_.close();
  source_.open(label);
}

void WorkLog::end() {
  {
    const std::lock_guard lock(mutex_);
    Thread& thread = threads_[std::this_thread::get_id()];
    close(thread, source_.now());
    if (!std::exchange(thread.is_labeled, false))
      return;
  }
  source_.close();
}

void WorkLog::end_of(const plan::Instruction& instruction) {
  {
    const std::lock_guard lock(mutex_);
    const auto& at = threads_[std::this_thread::get_id()].at;
    if (!at || plan::key_of(at->instruction) != plan::key_of(instruction))
      return;
  }
  end();
}

void WorkLog::close(Thread& thread, Nanoseconds now) {
  if (!thread.at)
    return;
  thread.at->end = now;
  done_.push_back(*std::exchange(thread.at, std::nullopt));
}

void WorkLog::start() {
  source_.start();
  const std::lock_guard lock(mutex_);
  is_on_ = true;
}

void WorkLog::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_on_ = false;
    const Nanoseconds now = source_.now();
    for (auto& [id, thread] : threads_)
      close(thread, now);
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
