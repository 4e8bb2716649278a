#pragma once

// The metrics of Lin et al., "Understanding Stragglers in Large Model Training Using What-if
// Analysis", OSDI 2025: how much longer steps take than with ideal durations of all operations, or
// of one type, stage, replica or worker, and what share of that a few workers and the last stage
// explain. The ideal duration of an operation is the same everywhere: the mean for operations of a
// single worker, the median for communication.

#include <map>
#include <string>
#include <vector>

#include "pipewright/trace/straggler/job_steps.hpp"

namespace pipewright::trace {

/// Slowdown of each step and of the mean step.
struct Slowdown {
  double all = 1;  // T(…) / T(ideal), T: mean over the steps
  std::vector<double> by_step{};
};

/// A part of the slowdown that a set of operations explains.
struct ExplainedShare {
  double share = 0;      // (T(recorded) - T(recorded, but these ideal)) / (T(recorded) - T(ideal))
  double added = 0;      // (T(ideal, but these as recorded) - T(ideal)) / the same
  double without_s = 0;  // T(recorded, but these ideal)
  double with_s = 0;     // T(ideal, but these as recorded)
};

struct StragglerMetrics {
  std::array<double, job_operation_count> ideal_s{};  // duration by operation
  std::vector<double> replayed_s{}, ideal_step_s{};   // by step
  Slowdown slowdown{};                                // S, Eq. 1
  std::map<std::string, Slowdown> by_operation{};     // S_t, Eq. 2
  std::vector<Slowdown> by_stage{}, by_replica{};
  std::vector<double> by_worker{};       // S_w, Eq. 4
  std::vector<int> workers{};            // slowest first
  int slowest_workers = 1;               // number of workers that count as slow: 3 %
  ExplainedShare workers_explain{};      // M_W, Eq. 5
  ExplainedShare last_stage_explains{};  // M_S
};

StragglerMetrics straggler_metrics(const JobSteps& steps);

/// Returns the ideal duration of each operation in every step.
JobTimes ideal_times(const JobGraph& graph, const std::array<double, job_operation_count>& ideal,
                     std::size_t steps);

}  // namespace pipewright::trace
