#pragma once

// What a replay of lengths alone leaves unexplained of a step, explained by what the trace tells
// beside them: which sends and receives were one call, and how much later each operation began than
// what it waits for had ended. Loading data, launching kernels and Python are in no event.

#include <string>
#include <vector>

#include "pipewright/trace/straggler/job_steps.hpp"

namespace pipewright::trace {

/// Delays of one kind.
struct DelayKind {
  std::string before;     // an operation's type, "first-forward", or "joined-transfers"
  std::size_t count = 0;  // in all steps; those of a group are one
  double mean_s = 0, longest_s = 0;
  double explains_s = 0;  // of the mean step: what it adds to the replay with those before it
};

struct LaunchDelays {
  std::size_t joined = 0;             // pairs of a send and a receive that were one call
  std::vector<double> explained_s{};  // by step: replayed with the step's own delays
  /// Mean over the steps of how far a replay is off the measured step, over the replayed.
  double plain_error = 0;      // lengths alone
  double explained_error = 0;  // with the step's own delays
  /// … of every second step, with each operation's mean delay in the others; below 0: one step.
  double kept_error = -1;
  std::vector<DelayKind> kinds{};  // in the order of a step; what they explain adds up
};

LaunchDelays launch_delays(const JobSteps& steps, const std::vector<double>& replayed_s);

/// Mean of |measured - replayed| / replayed over those steps.
double replay_error(const std::vector<double>& replayed, const std::vector<double>& measured);

}  // namespace pipewright::trace
