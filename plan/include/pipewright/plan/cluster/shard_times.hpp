#pragma once

// What the shards of layers pass on among each other, as time: a part of each forward and of each
// backward, in which their ranks compute nothing.

#include "pipewright/plan/cluster/collective_times.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"

namespace pipewright::plan {

/// Where the ranks lie that share out a layer along each axis.
struct ShardPlaces {
  GroupPlace tensor{};
  GroupPlace context{};
  GroupPlace expert{};
};

enum class ShardPass { Forward, Backward };

/// What a layer's shards take to pass on what they have to in such a pass. With a machine at its
/// constants; else rings over the cluster's links, and of exchanges what each rank sends.
Seconds shard_time(const LayerCost& layer, const Cluster& cluster, const ShardPlaces& places,
                   ShardPass pass = ShardPass::Forward);

/// The costs with that in the forward and in the input gradient of each layer, measured beside
/// others or not.
LayerCosts with_shard_times(LayerCosts costs, const Cluster& cluster, const ShardPlaces& places);

}  // namespace pipewright::plan
