#pragma once

// Two strands of one rank's work take turns: who has the baton computes. It changes hands where a
// strand meets others, and never by the clock, so all shards of a stage meet in one order: first of
// the one strand, first of the other, second of the one, …; when one is over the other goes on
// alone. What a strand sends and waits for is so beside the compute of the other.

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace pipewright::exec {

class Baton {
 public:
  /// Runs one of the two strands, 0 or 1, on a thread of its own; 0 has the baton first. What
  /// `work` throws passes through, and the other strand then ends at its next turn by Aborted.
  void run(int strand, const std::function<void()>& work);

  /// From within the strand that has the baton: passes it on, meets others by `meeting`, and
  /// returns when it has come back. Of two meetings the later begins when the earlier is over. Any
  /// thread that works for the strand may call it. Returns for how long the strand had the baton
  /// meanwhile: nobody computed then.
  std::chrono::steady_clock::duration meet(const std::function<void()>& meeting);

  /// Whose turn it is; for who has it.
  int holder() const { return holder_; }

 private:
  void take(std::unique_lock<std::mutex>& held, int strand);
  void pass_on(int strand);

  std::mutex mutex_;
  std::condition_variable changed_;
  int holder_ = 0;
  std::chrono::steady_clock::time_point passed_on_;  // the last time
  bool in_meeting_ = false;
  bool failed_ = false;
  std::array<bool, 2> is_over_{};
};

}  // namespace pipewright::exec
