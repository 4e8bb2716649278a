#pragma once

// What the time of a run's iteration is made of, rank by rank: what a rank computes, what ends its
// iteration, and how long it waits for others.

#include <vector>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::search {

/// Of a rank of the pipeline, in seconds of an iteration.
struct RankTime {
  std::vector<int> stages{};
  int layers = 0;
  double forward_s = 0;
  double backward_s = 0;
  double end_s = 0;  // what is left of the sums of gradients and parameters, and the optimizer
  /// Of an iteration of `iteration_s`: for other ranks, and for transfers.
  double waits_s(double iteration_s) const { return iteration_s - forward_s - backward_s - end_s; }
};

/// By the cluster's constants, as `forecast` with `as_it_is` has the iteration. Throws
/// plan::InputError where a run cannot be timed there.
std::vector<RankTime> rank_times(const plan::Cluster& cluster, const models::MeasuredRun& run);

/// Whose stages and layers are where, a rank's chunks by turns, of a run that may not be timed.
std::vector<RankTime> rank_stages(const models::MeasuredRun& run);

}  // namespace pipewright::search
