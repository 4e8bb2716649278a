#include "pipewright/plan/cluster/shard_times.hpp"

namespace pipewright::plan {
namespace {

double total_of(const ShardTraffic& traffic) {
  return traffic.times * static_cast<double>(traffic.bytes.value);
}

double on_machine(const LayerCost& layer, const Cluster& cluster, const ShardPlaces& places) {
  const MachineConstants& constants = cluster.machine->constants;
  double seconds = 0;
  if (const ShardTraffic& sums = layer.tensor_sums; sums.times > 0 && places.tensor.devices > 1)
    seconds += sums.times *
               shard_sum_s(sum_time(cluster, places.tensor, static_cast<double>(sums.bytes.value)),
                           constants);
  const auto add = [&](const ShardTraffic& traffic, const GroupPlace& place) {
    if (traffic.times > 0 && place.devices > 1)
      seconds +=
          exchanges_s(exchange_time(cluster, place, total_of(traffic)), traffic.times, constants);
  };
  add(layer.expert_exchanges, places.expert);
  add(layer.context_gathers, places.context);
  return seconds;
}

double on_links(const LayerCost& layer, const Cluster& cluster, const ShardPlaces& places) {
  const auto link = [&](const GroupPlace& place) -> const Link& {
    return place.spans ? cluster.between_nodes : cluster.within_node;
  };
  double seconds = 0;
  if (const ShardTraffic& sums = layer.tensor_sums; sums.times > 0 && places.tensor.devices > 1) {
    const RingTime ring =
        ring_time(link(places.tensor), sums.bytes, places.tensor.devices, /*rounds=*/2);
    seconds += sums.times * (ring.held + ring.latency).value;
  }
  const auto add = [&](const ShardTraffic& traffic, const GroupPlace& place) {
    if (traffic.times > 0 && place.devices > 1)
      seconds +=
          traffic.times *
          (occupancy(link(place), traffic.bytes) + link(place).latency * (place.devices - 1)).value;
  };
  add(layer.expert_exchanges, places.expert);
  add(layer.context_gathers, places.context);
  return seconds;
}

}  // namespace

Seconds shard_time(const LayerCost& layer, const Cluster& cluster, const ShardPlaces& places) {
  return {cluster.machine ? on_machine(layer, cluster, places) : on_links(layer, cluster, places)};
}

LayerCosts with_shard_times(LayerCosts costs, const Cluster& cluster, const ShardPlaces& places) {
  const auto add = [&](LayerCost& layer) {
    const Seconds shards = shard_time(layer, cluster, places);
    for (LayerTimes* const times : {static_cast<LayerTimes*>(&layer), &layer.contended}) {
      times->forward += shards;
      times->input_gradient += shards;
      times->shards += shards;
    }
  };
  for (LayerCost& layer : costs.layers)
    add(layer);
  add(costs.loss);
  return costs;
}

}  // namespace pipewright::plan
