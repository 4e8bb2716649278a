#pragma once

// The partition with the shortest simulated iteration. Balanced stages are not always the fastest:
// point-to-point transfers at stage boundaries take time as well, and a schedule waits for some
// stages more than for others.

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

/// If there are at most this many partitions, all of them are tried.
inline constexpr int most_to_try_all = 3000;

/// Finds the fastest partition: exactly, if there are at most `most_to_try_all`. Otherwise it
/// descends from the balanced partition: one boundary, or several neighboring ones together, move
/// by 1, 2 or 4 layers as long as that shortens the iteration. It ends when no such move helps. The
/// result may not be the optimum, but is never slower than the balanced partition if that is within
/// the cap. No rank's peak exceeds `memory_cap`. Throws Infeasible if there are fewer layers than
/// stages, if the Program deadlocks, or if no partition that was tried is within the cap.
FastestPartition fastest_partition(const plan::Program& program, const plan::LayerCosts& costs,
                                   const plan::Cluster& cluster,
                                   std::optional<plan::Bytes> memory_cap = {});

/// The iteration time and the peak of the fullest rank with given stage boundaries.
struct PartitionNeed {
  plan::Seconds iteration;
  plan::Bytes peak;
};
using PartitionEvaluation = std::function<PartitionNeed(const std::vector<int>& boundaries)>;

/// Finds the fastest partition for any evaluation function, descending from the partition `start`,
/// which replaces the balanced one in comparisons. `layers` must be at least the number of stages.
FastestPartition fastest_partition(int layers, std::vector<int> start,
                                   const PartitionEvaluation& evaluate,
                                   std::optional<plan::Bytes> memory_cap = {});

}  // namespace pipewright::sim
