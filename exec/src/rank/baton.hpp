#pragma once

// Lets two strands of one rank's work take turns: the strand that holds the baton computes. The
// baton changes hands where a strand communicates with other ranks, never by the clock, so all
// tensor-parallel ranks of a stage communicate in one order: first strand, second strand, first
// strand, … When one strand is over, the other continues alone. So one strand's communication
// overlaps with the other's compute.

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace pipewright::exec {

class Baton {
 public:
  /// Runs one of the two strands, 0 or 1, on the calling thread, which must not run the other;
  /// strand 0 gets the baton first. Passes on exceptions of `work`; the other strand then ends with
  /// Aborted at its next turn.
  void run(int strand, const std::function<void()>& work);

  /// Passes the baton on, runs `meeting` (the communication with other ranks), and returns when the
  /// baton has come back. Called by any thread that works for the strand that holds the baton.
  /// Meetings do not overlap: a later one begins when the earlier one has ended. Returns how long
  /// this strand held the baton meanwhile, that is, how long neither strand computed.
  std::chrono::steady_clock::duration meet(const std::function<void()>& meeting);

  /// Returns the strand that holds the baton. Only that strand may call it.
  int holder() const { return holder_; }

 private:
  void take(std::unique_lock<std::mutex>& held, int strand);
  void pass_on(int strand);

  std::mutex mutex_;
  std::condition_variable changed_;
  int holder_ = 0;
  std::chrono::steady_clock::time_point passed_on_;  // the last time that the baton was passed on
  bool in_meeting_ = false;
  bool failed_ = false;
  std::array<bool, 2> is_over_{};
};

}  // namespace pipewright::exec
