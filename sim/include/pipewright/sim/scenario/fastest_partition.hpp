#pragma once

// The partition whose simulated iteration is shortest. Balanced stages are not always that: what
// crosses a border takes time as well, and a schedule waits for some stages more than for others.

#include <functional>
#include <optional>
#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::sim {

struct FastestPartition {
  plan::Partition partition;
  plan::Seconds iteration;
  plan::Seconds balanced;  // iteration of the partition that balances the profile
  bool exact = false;      // every partition was simulated
  int simulated = 0;       // partitions
};

/// Up to this many ways to cut, all of them are tried.
inline constexpr int most_to_try_all = 3000;

/// Up to `most_to_try_all` partitions: all of them, exact. Beyond that a descent from the balanced
/// partition: one border, or several neighbouring ones together, move by 1, 2 or 4 layers as long
/// as that shortens the iteration. It ends where no such move helps, which need not be the optimum,
/// but is never slower than the balanced partition if that is within the cap. No rank's peak is
/// more than `memory_cap`. Throws Infeasible when there are fewer layers than stages, when the
/// Program deadlocks, or when no partition that was tried is within the cap.
FastestPartition fastest_partition(const plan::Program& program, const plan::LayerCosts& costs,
                                   const plan::Cluster& cluster,
                                   std::optional<plan::Bytes> memory_cap = {});

/// What an iteration with these borders of stages takes, and what its fullest rank holds.
struct PartitionNeed {
  plan::Seconds iteration;
  plan::Bytes peak;
};
using PartitionEvaluation = std::function<PartitionNeed(const std::vector<int>& boundaries)>;

/// The same for anything that can be evaluated, from the partition `start`, with which it is
/// compared instead of a balanced one. `layers` are at least as many as stages.
FastestPartition fastest_partition(int layers, std::vector<int> start,
                                   const PartitionEvaluation& evaluate,
                                   std::optional<plan::Bytes> memory_cap = {});

}  // namespace pipewright::sim
