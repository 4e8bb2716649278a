#pragma once

// All that an iteration's time depends on, beside the Program: what each stage costs, on which
// machines, and how microbatches, ranks and repetitions differ from each other.

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
  /// The times of the stages while `busy_cores` ranks of a node compute at once; what holds in
  /// between is linear in their number, and beyond it does not change. Empty: no rank minds others.
  std::vector<plan::StageCost> contended;
  int busy_cores = 1;
  plan::Bytes workspaces{};  // of a rank's device, see plan::LayerCosts
  plan::Cluster cluster;
  /// The same as somebody measured it, where its machine's constants price sums and where they made
  /// the links of `cluster` those of transfers.
  std::optional<plan::Cluster> measured{};
  /// Copies of each rank, side by side, which sum their gradients, and the shards of each copy.
  /// `devices` says where each is, by rank, copy and shard; empty: they are counted in this order,
  /// so the copies of a rank are neighbours.
  int replicas = 1;
  int shards = 1;
  std::vector<int> devices{};
  /// How much of what shards pass on in one action of a fused pair goes on beside the other's
  /// compute: 0 to 1.
  double pair_overlap = 0;
  int expert = 1;  // copies that share out the experts, so that these have fewer copies
  /// By microbatch: factors of its compute times and of what it sends. Empty: all 1.
  std::vector<double> microbatch_lengths;
  /// Standard deviation of every duration over its mean; durations are then log-normal, each drawn
  /// on its own from `seed`.
  double jitter = 0;
  std::uint64_t seed = 0;
  /// By event of the Structure: factors of what they take, as somebody measured them; one list for
  /// all copies of the ranks, or one after the other a list for each. Empty: all 1.
  std::vector<double> event_factors;

  /// Devices that a rank of the Program stands for: shard m mod `shards` of copy m / `shards`.
  int members() const { return replicas * shards; }
  int device(int rank, int member) const {
    const int at = rank * members() + member;
    return devices.empty() ? at : devices[static_cast<std::size_t>(at)];
  }
};

/// The stages of a partition, and all else that a scenario says.
StepCosts step_costs_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                        const plan::Partition& partition);
/// For whoever cuts a scenario many times: its layers' costs by shard, and what of a step another
/// partition changes. A step that was of the scenario with any partition then is with this one.
plan::LayerCosts shard_costs_of(const plan::Scenario& scenario, const plan::LayerCosts& costs);
void set_partition(StepCosts& step, const plan::Scenario& scenario,
                   const plan::LayerCosts& shard_costs, const plan::Partition& partition);
/// Sets what the stages of a partition cost.
void set_stages(StepCosts& step, const plan::LayerCosts& costs, const plan::Partition& partition,
                const plan::TrainingMemory& training = {});

/// Refuses what has no sensible answer, in words and all at once: another number of stages, ranks
/// or microbatches than the Program's; times that are negative or not finite; a factor, a speed or
/// a bandwidth that is not more than 0. Throws InputError.
void require_usable(const StepCosts& costs, const plan::Program& program);

}  // namespace pipewright::sim
