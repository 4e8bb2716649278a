#pragma once

// All that an iteration's time depends on, beside the Program: what each stage costs, on which
// machines, and how microbatches, ranks and repetitions differ from each other.

#include <cstdint>
#include <vector>

#include "pipewright/plan/cluster.hpp"
#include "pipewright/plan/program.hpp"
#include "pipewright/plan/scenario.hpp"
#include "pipewright/plan/stage_costs.hpp"

namespace pipewright::sim {

struct StepCosts {
  std::vector<plan::StageCost> stages;
  plan::Cluster cluster;
  /// Pipelines side by side, which sum their gradients. Rank r of pipeline d is device
  /// r · replicas + d, so the replicas of a rank are neighbours (plan::pipe_data_topology).
  int replicas = 1;
  /// By microbatch: factors of its compute times and of what it sends. Empty: all 1.
  std::vector<double> microbatch_lengths;
  /// Standard deviation of every duration over its mean; durations are then log-normal, each drawn
  /// on its own from `seed`.
  double jitter = 0;
  std::uint64_t seed = 0;
};

/// All that a scenario says beside what its stages cost.
StepCosts step_costs_of(const plan::Scenario& scenario, std::vector<plan::StageCost> stages);

/// Refuses what has no sensible answer, in words and all at once: another number of stages, ranks
/// or microbatches than the Program's; times that are negative or not finite; a factor, a speed or
/// a bandwidth that is not more than 0. Throws InputError.
void require_usable(const StepCosts& costs, const plan::Program& program);

}  // namespace pipewright::sim
