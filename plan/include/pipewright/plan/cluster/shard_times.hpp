#pragma once

// Time of communication among the tensor-, context- and expert-parallel ranks of a layer. It is
// part of each forward and backward, and the ranks compute nothing during it.

#include "pipewright/plan/cluster/collective_times.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"

namespace pipewright::plan {

/// Placement of the groups that partition a layer along each axis.
struct ShardPlaces {
  GroupPlace tensor{};
  GroupPlace context{};
  GroupPlace expert{};
};

enum class ShardPass { Forward, Backward };

/// Returns the time of the layer's collectives in such a pass: from the machine's constants if the
/// cluster has them; else from rings over its links, and for all-to-alls and all-gathers from the
/// bytes that each rank sends.
Seconds shard_time(const LayerCost& layer, const Cluster& cluster, const ShardPlaces& places,
                   ShardPass pass = ShardPass::Forward);

/// Adds `shard_time` to each layer's forward and input gradient, in the plain and in the contended
/// times.
LayerCosts with_shard_times(LayerCosts costs, const Cluster& cluster, const ShardPlaces& places);

}  // namespace pipewright::plan
