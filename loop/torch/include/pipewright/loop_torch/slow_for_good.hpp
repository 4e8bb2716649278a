#pragma once

// When a rank that is slow makes room: it ends the job, and who has started the ranks gives its
// place up.

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "pipewright/loop_torch/slow_ranks.hpp"

namespace pipewright::loop {

/// What becomes of the place of a rank that is slow for good.
enum class SlowPlace {
  Stays,       // nobody would do anything about it
  IsReplaced,  // a spare one comes in
  IsLeftOut,   // there is one rank less in the pipeline
};

/// Ends the job; the message names the rank.
class SlowRankEnds : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct SlowForGoodSettings {
  SlowPlace place = SlowPlace::Stays;
  int rank = 0;
  int pipeline_ranks = 1;
  double restart_s = 0;                // what a start takes, up to the end of its first step
  std::function<int()> newest_step{};  // of whole checkpoints
};

/// Watches a rank while it is named as slow. It is so for good once this has cost as much time as a
/// new start would; and it ends with the next checkpoint, so that nothing is done twice. It stays
/// where that would not help: where too few steps are left to win a start back, or a pipeline of
/// one rank less would be no faster.
class SlowForGood {
 public:
  explicit SlowForGood(SlowForGoodSettings settings) : settings_(std::move(settings)) {}

  /// After each step. `slow`: the rank's pace while it is named. Why the job is to end, if it is.
  std::optional<std::string> end_step(const std::optional<Pace>& slow, double step_s,
                                      int steps_left, const Say& say);

 private:
  /// Why it would be of no use; empty: it would be.
  std::string obstacle(const Pace& slow, int steps_left) const;

  SlowForGoodSettings settings_;
  double cost_s_ = 0;              // since it was named
  std::optional<int> after_step_;  // ends with a checkpoint behind that of this step
  bool has_said_why_not_ = false;
};

}  // namespace pipewright::loop
