#pragma once

// All inputs of an iteration's time except the Program: the costs of each stage, the machines, and
// the differences between microbatches, ranks and repetitions.

#include <cstdint>
#include <optional>
#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/costs/stage_costs.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::sim {

struct StepCosts {
  std::vector<plan::StageCost> stages;
  /// The times of the stages while `busy_cores` ranks of a node compute at once. For fewer ranks
  /// times are interpolated linearly; for more they do not change. Empty: ranks do not slow each
  /// other down.
  std::vector<plan::StageCost> contended;
  int busy_cores = 1;
  plan::Bytes workspaces{};  // of a rank's device, see plan::LayerCosts
  plan::Cluster cluster;
  /// The cluster as measured, if its machine's constants price collectives and the links of
  /// `cluster` were derived from the constants for transfers.
  std::optional<plan::Cluster> measured{};
  /// The number of data-parallel replicas, which all-reduce their gradients, and the number of
  /// tensor-parallel ranks of each replica. `devices` gives the device of each by rank, replica and
  /// tensor-parallel rank; empty: they are numbered in this order, so the replicas of a rank are
  /// neighbors.
  int replicas = 1;
  int shards = 1;
  std::vector<int> devices{};
  /// The part of an action's tensor-parallel communication in a fused pair that overlaps with the
  /// other action's compute: 0 to 1.
  double pair_overlap = 0;
  int expert = 1;  // replicas that partition the experts (expert parallelism); experts have fewer
                   // replicas
  /// Factors by microbatch of its compute times and of its transfers' sizes. Empty: all 1.
  std::vector<double> microbatch_lengths;
  /// Standard deviation of every duration over its mean; durations are then log-normal, each
  /// sampled independently from `seed`.
  double jitter = 0;
  std::uint64_t seed = 0;
  /// Measured factors of the durations by event of the Structure: one list for all replicas, or a
  /// list for each replica, concatenated. Empty: all 1.
  std::vector<double> event_factors;

  /// Returns the number of devices that a rank of the Program stands for: member m is
  /// tensor-parallel rank m mod `shards` of replica m / `shards`.
  int members() const { return replicas * shards; }
  int device(int rank, int member) const {
    const int at = rank * members() + member;
    return devices.empty() ? at : devices[static_cast<std::size_t>(at)];
  }
};

/// Returns the costs of a partition's stages and the scenario's other inputs.
StepCosts step_costs_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                        const plan::Partition& partition);
/// Helpers for code that partitions a scenario many times. `shard_costs_of` returns the layer costs
/// per tensor-parallel rank. `set_partition` changes only what depends on the partition, in a step
/// that was made from the scenario with any partition.
plan::LayerCosts shard_costs_of(const plan::Scenario& scenario, const plan::LayerCosts& costs);
void set_partition(StepCosts& step, const plan::Scenario& scenario,
                   const plan::LayerCosts& shard_costs, const plan::Partition& partition);
/// Sets the costs of a partition's stages.
void set_stages(StepCosts& step, const plan::LayerCosts& costs, const plan::Partition& partition,
                const plan::TrainingMemory& training = {});

/// Rejects unusable costs and reports all errors at once: a number of stages, ranks or microbatches
/// that differs from the Program's; times that are negative or not finite; a factor, a speed or a
/// bandwidth that is not more than 0. Throws InputError.
void require_usable(const StepCosts& costs, const plan::Program& program);

}  // namespace pipewright::sim
