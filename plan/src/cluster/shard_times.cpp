#include "pipewright/plan/cluster/shard_times.hpp"

#include <algorithm>

namespace pipewright::plan {
namespace {

int times_in(ShardPass pass, const PartitionCollectives& traffic) {
  return pass == ShardPass::Forward ? traffic.times : backward_times(traffic);
}

double on_machine(const LayerCost& layer, const Cluster& cluster, const ShardPlaces& places,
                  ShardPass pass) {
  const MachineConstants& constants = cluster.machine->constants;
  double seconds = 0;
  const PartitionCollectives& sums = layer.tensor_all_reduces;
  if (const int times = times_in(pass, sums); times > 0 && places.tensor.devices > 1)
    seconds +=
        times * shard_sum_s(sum_time(cluster, places.tensor, static_cast<double>(sums.bytes.value)),
                            constants);
  const auto add = [&](const PartitionCollectives& traffic, const GroupPlace& place) {
    const int times = times_in(pass, traffic);
    const double total = times * static_cast<double>(traffic.bytes.value);
    if (times > 0 && place.devices > 1)
      seconds += exchanges_s(exchange_time(cluster, place, total), times, constants);
  };
  add(layer.expert_all_to_alls, places.expert);
  add(layer.context_all_gathers, places.context);
  return seconds;
}

double on_links(const LayerCost& layer, const Cluster& cluster, const ShardPlaces& places,
                ShardPass pass) {
  const auto link = [&](const GroupPlace& place) -> const Link& {
    return link_of_level(cluster, place.spans ? std::max<std::size_t>(1, place.level) : 0);
  };
  double seconds = 0;
  const PartitionCollectives& sums = layer.tensor_all_reduces;
  if (const int times = times_in(pass, sums); times > 0 && places.tensor.devices > 1) {
    const RingTime ring = shard_sum_time(link(places.tensor), sums.bytes, places.tensor.devices);
    seconds += times * (ring.held + ring.latency).value;
  }
  const auto add = [&](const PartitionCollectives& traffic, const GroupPlace& place) {
    if (const int times = times_in(pass, traffic); times > 0 && place.devices > 1)
      seconds +=
          times *
          (occupancy(link(place), traffic.bytes) + link(place).latency * (place.devices - 1)).value;
  };
  add(layer.expert_all_to_alls, places.expert);
  add(layer.context_all_gathers, places.context);
  return seconds;
}

}  // namespace

Seconds shard_time(const LayerCost& layer, const Cluster& cluster, const ShardPlaces& places,
                   ShardPass pass) {
  return {cluster.machine ? on_machine(layer, cluster, places, pass)
                          : on_links(layer, cluster, places, pass)};
}

LayerCosts with_shard_times(LayerCosts costs, const Cluster& cluster, const ShardPlaces& places) {
  const auto add = [&](LayerCost& layer) {
    const Seconds forward = shard_time(layer, cluster, places, ShardPass::Forward);
    const Seconds backward = shard_time(layer, cluster, places, ShardPass::Backward);
    for (LayerTimes* const times : {static_cast<LayerTimes*>(&layer), &layer.contended}) {
      times->forward += forward;
      times->input_gradient += backward;
      times->shards += forward;
      times->backward_shards += backward;
    }
  };
  for (LayerCost& layer : costs.layers)
    add(layer);
  add(costs.loss);
  return costs;
}

}  // namespace pipewright::plan
