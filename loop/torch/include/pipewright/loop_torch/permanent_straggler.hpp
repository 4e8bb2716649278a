#pragma once

// Decides when a persistently slow rank should give up its place: it ends the job, and the launcher
// restarts the job without it.

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "pipewright/loop_torch/slow_ranks.hpp"

namespace pipewright::loop {

/// The launcher's action for the place of a persistently slow rank.
enum class SlowPlace {
  Stays,       // nothing: the rank is not replaced
  IsReplaced,  // a spare process takes the place
  IsLeftOut,   // the pipeline continues with one rank fewer
};

/// Ends the job. The message names the rank.
class SlowRankEnds : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct PermanentStragglerSettings {
  SlowPlace place = SlowPlace::Stays;
  int rank = 0;
  int pipeline_ranks = 1;
  double restart_s = 0;                // duration of a restart, up to the end of its first step
  std::function<int()> newest_step{};  // step of the newest complete checkpoint
};

/// Watches one rank while it is reported as slow. It counts as persistently slow once the lost time
/// exceeds the time of a restart. The job then ends after the next checkpoint, so that no step is
/// repeated. The rank stays if leaving would not help: if too few steps are left to make up for a
/// restart, or if a pipeline with one rank fewer would be no faster.
class PermanentStraggler {
 public:
  explicit PermanentStraggler(PermanentStragglerSettings settings)
      : settings_(std::move(settings)) {}

  /// Call after each step. `slow` is the rank's pace while it is reported as slow. Returns the
  /// reason if the job should end.
  std::optional<std::string> end_step(const std::optional<Pace>& slow, double step_s,
                                      int steps_left, const Say& say);

 private:
  /// Returns why ending the job would not help; empty if it would.
  std::string obstacle(const Pace& slow, int steps_left) const;

  PermanentStragglerSettings settings_;
  double cost_s_ = 0;  // time lost since the rank was reported as slow
  /// Step of the newest checkpoint at the decision; the next one ends the job.
  std::optional<int> after_step_;
  bool has_said_why_not_ = false;
};

}  // namespace pipewright::loop
