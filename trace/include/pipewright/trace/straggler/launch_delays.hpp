#pragma once

// Explains the part of a step that a replay of durations alone does not reproduce, from two facts
// in the trace: which sends and receives were one call, and how much later each operation began
// than its predecessors had ended. Data loading, kernel launches and Python appear in no event.

#include <string>
#include <vector>

#include "pipewright/trace/straggler/job_steps.hpp"

namespace pipewright::trace {

/// Delays before one kind of operation.
struct DelayKind {
  std::string before;     // an operation's type, "first-forward", or "joined-transfers"
  std::size_t count = 0;  // in all steps; a group counts once
  double mean_s = 0, longest_s = 0;
  double explains_s = 0;  // seconds it adds to the replayed mean step on top of the previous kinds
};

struct LaunchDelays {
  std::size_t joined = 0;             // number of send-receive pairs that were one call
  std::vector<double> explained_s{};  // by step: replayed with the step's own delays
  /// Mean over the steps of |measured - replayed| / replayed.
  double plain_error = 0;      // durations alone
  double explained_error = 0;  // with the step's own delays
  /// Error over every second step, using each operation's mean delay in the other steps; negative:
  /// one step.
  double kept_error = -1;
  std::vector<DelayKind> kinds{};  // in the order of a step; `explains_s` adds up
};

/// When operations began later than the replay of durations has them begin.
struct LateBegins {
  JobGraph graph;          // in which the sends and receives of one call begin together
  std::size_t joined = 0;  // number of send-receive pairs that were one call
  JobTimes delays;         // seconds after all predecessors had ended; equal for all of a group
};
LateBegins late_begins(const JobSteps& steps);

LaunchDelays launch_delays(const JobSteps& steps, const std::vector<double>& replayed_s);

/// Returns the mean of |measured - replayed| / replayed over those steps.
double replay_error(const std::vector<double>& replayed, const std::vector<double>& measured);

}  // namespace pipewright::trace
