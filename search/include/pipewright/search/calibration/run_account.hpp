#pragma once

// The parts of a run's iteration time, rank by rank: the compute of a rank, the end of its
// iteration, and its waits for other ranks.

#include <vector>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::search {

/// The times of a rank of the pipeline, in seconds per iteration.
struct RankTime {
  std::vector<int> stages{};
  int layers = 0;
  double forward_s = 0;
  double backward_s = 0;
  double end_s = 0;  // the exposed rest of the gradient and parameter collectives, and the
                     // optimizer
  /// Returns the rank's waits for other ranks and for transfers in an iteration of `iteration_s`.
  double waits_s(double iteration_s) const { return iteration_s - forward_s - backward_s - end_s; }
};

/// Returns the times by the cluster's constants, consistent with `forecast` with `as_it_is`. Throws
/// plan::InputError if a run cannot be timed there.
std::vector<RankTime> rank_times(const plan::Cluster& cluster, const models::MeasuredRun& run);

/// Returns which stages and layers the ranks have, chunks assigned in turn, also for a run that
/// cannot be timed.
std::vector<RankTime> rank_stages(const models::MeasuredRun& run);

}  // namespace pipewright::search
