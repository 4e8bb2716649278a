#pragma once

// Search for the partition with the shortest simulated iteration. Stages with equal times are not
// always the fastest: point-to-point transfers at stage boundaries take time as well, and a
// schedule waits for some stages more than for others.

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
  plan::Seconds balanced;  // iteration of the balanced partition, or of `start`
  bool exact = false;      // every partition was simulated
  int simulated = 0;       // number of partitions that were simulated
};

/// Number of possible partitions up to which all of them are simulated.
inline constexpr int most_to_try_all = 3000;

/// Returns the fastest partition in which no rank's peak memory exceeds `memory_cap`. If there are
/// at most `most_to_try_all` partitions, all are simulated. Otherwise this is a local search from
/// the partition that balances the stages' profiled times: it moves one boundary, or several
/// neighboring ones together, by 1, 2 or 4 layers as long as that shortens the iteration or, above
/// the cap, lowers the peak. The result may not be the optimum, but is never slower than the
/// balanced partition if that is within the cap. Throws Infeasible if there are fewer layers than
/// stages, if the Program deadlocks, or if no simulated partition is within the cap.
FastestPartition fastest_partition(const plan::Program& program, const plan::LayerCosts& costs,
                                   const plan::Cluster& cluster,
                                   std::optional<plan::Bytes> memory_cap = {});

/// The iteration time, and the peak memory of the rank with the highest peak, under given stage
/// boundaries.
struct PartitionNeed {
  plan::Seconds iteration;
  plan::Bytes peak;
};
using PartitionEvaluation = std::function<PartitionNeed(const std::vector<int>& boundaries)>;

/// Does the same search with any evaluation function, from the boundaries `start` instead of the
/// balanced ones. `layers` must be at least the number of stages.
FastestPartition fastest_partition(int layers, std::vector<int> start,
                                   const PartitionEvaluation& evaluate,
                                   std::optional<plan::Bytes> memory_cap = {});

}  // namespace pipewright::sim
