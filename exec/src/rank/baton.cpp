#include "baton.hpp"

#include "pipewright/exec/aborted.hpp"

namespace pipewright::exec {

using Clock = std::chrono::steady_clock;

void Baton::take(std::unique_lock<std::mutex>& held, int strand) {
  changed_.wait(held, [&] { return failed_ || holder_ == strand; });
  if (failed_)
    throw Aborted("the other action of its pair has failed");
}

/// Passes the baton on; requires the lock. A strand that has failed in a meeting may not hold the
/// baton.
void Baton::pass_on(int strand) {
  const int other = 1 - strand;
  if (holder_ == strand && !is_over_[static_cast<std::size_t>(other)]) {
    holder_ = other;
    passed_on_ = Clock::now();
  }
  changed_.notify_all();
}

void Baton::run(int strand, const std::function<void()>& work) {
  bool fails = true;
  const auto end = [&] {
    const std::lock_guard lock(mutex_);
    failed_ = failed_ || fails;
    is_over_[static_cast<std::size_t>(strand)] = true;
    pass_on(strand);
  };
  try {
    {
      std::unique_lock lock(mutex_);
      take(lock, strand);
    }
    work();
    fails = false;
  } catch (...) {
    end();
    throw;
  }
  end();
}

Clock::duration Baton::meet(const std::function<void()>& meeting) {
  const auto begin = Clock::now();
  std::unique_lock lock(mutex_);
  const int strand = holder_;
  changed_.wait(lock, [&] { return failed_ || !in_meeting_; });
  take(lock, strand);
  in_meeting_ = true;
  pass_on(strand);
  const bool is_alone = holder_ == strand;
  const auto given_away = passed_on_;
  lock.unlock();
  const auto has_met = [&] {
    lock.lock();
    in_meeting_ = false;
    changed_.notify_all();
  };
  try {
    meeting();
  } catch (...) {
    has_met();
    throw;
  }
  has_met();
  take(lock, strand);
  if (is_alone)
    return Clock::now() - begin;
  return given_away - begin + (Clock::now() - passed_on_);  // time used by the other strand
}

}  // namespace pipewright::exec
