#include "pipewright/plan/scenario/scenario_cut.hpp"

#include <algorithm>

namespace pipewright::plan {
namespace {

/// Every so-many-th of the devices: those of one shard, or of one copy.
std::vector<int> every(const std::vector<int>& devices, int first, int step, int count) {
  std::vector<int> chosen;
  for (int at = 0; at < count; ++at)
    chosen.push_back(devices[static_cast<std::size_t>(first + at * step)]);
  return chosen;
}

}  // namespace

Cut cut_of(const Scenario& scenario) {
  const Pipeline& pipeline = scenario.pipeline;
  const ScheduleRequest request = request_of(pipeline);
  return {.tensor = pipeline.tensor,
          .sequence_parallel = pipeline.sequence_parallel,
          .context = pipeline.context,
          .data = pipeline.replicas,
          .expert = pipeline.expert,
          .pipeline = pipeline.ranks,
          .chunks = std::max(1, stage_count(request) / pipeline.ranks),
          .schedule = pipeline.schedule.name,
          .microbatch = scenario.training.microbatch_size,
          .zero = scenario.training.zero,
          .recompute = scenario.training.recompute};
}

int batch_of(const Scenario& scenario) {
  return microbatch_count(request_of(scenario.pipeline)) * scenario.training.microbatch_size *
         scenario.pipeline.replicas;
}

StagePlaces stage_places(const Pipeline& pipeline) {
  StagePlaces places{.copies = pipeline.replicas * pipeline.context, .shards = pipeline.tensor};
  const Topology topology = topology_of(pipeline);
  const auto coordinate = [&](int pipe, int data, int context, int tensor) {
    std::vector<int> along;
    for (const std::string& axis : topology.axes())
      along.push_back(axis == "pipe"      ? pipe
                      : axis == "data"    ? data
                      : axis == "context" ? context
                                          : tensor);
    return along;
  };
  for (int pipe = 0; pipe < pipeline.ranks; ++pipe)
    for (int data = 0; data < pipeline.replicas; ++data)
      for (int context = 0; context < pipeline.context; ++context)
        for (int tensor = 0; tensor < pipeline.tensor; ++tensor)
          places.devices.push_back(topology.rank_of(coordinate(pipe, data, context, tensor)));
  return places;
}

ShardPlaces shard_places(const Cluster& cluster, const Pipeline& pipeline) {
  const StagePlaces places = stage_places(pipeline);
  const auto place = [&](int step, int count) {
    return place_of(cluster, every(places.devices, 0, step, count));
  };
  return {.tensor = place(1, places.shards),
          .context = place(places.shards, pipeline.context),
          .expert = place(places.shards, pipeline.expert)};
}

}  // namespace pipewright::plan
