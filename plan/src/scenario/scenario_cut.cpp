#include "pipewright/plan/scenario/scenario_cut.hpp"

#include <algorithm>
#include <limits>

#include "pipewright/plan/costs/expert_loads.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"

namespace pipewright::plan {
namespace {

/// Returns `count` devices, `step` apart: those of one tensor-parallel or data-parallel group.
std::vector<int> every(const std::vector<int>& devices, int first, int step, int count) {
  std::vector<int> chosen;
  for (int at = 0; at < count; ++at)
    chosen.push_back(devices[static_cast<std::size_t>(first + at * step)]);
  return chosen;
}

void share_out(LayerTimes& times, int shards) {
  for (Seconds* const time : {&times.forward, &times.input_gradient, &times.weight_gradient,
                              &times.splitting, &times.optimizer_step})
    *time = *time * (1.0 / shards);
}

void share_out(LayerCost& layer, int shards) {
  share_out(static_cast<LayerTimes&>(layer), shards);
  share_out(layer.contended, shards);
  layer.selective_forward = layer.selective_forward * (1.0 / shards);
  for (Bytes* const bytes : {&layer.parameters, &layer.activation, &layer.forward_peak,
                             &layer.backward_peak, &layer.tied, &layer.freed_by_input_gradient,
                             &layer.input_gradient_peak, &layer.weight_gradient_peak,
                             &layer.forward_peak_without_graph, &layer.selective_activation})
    *bytes = {(bytes->value + shards - 1) / shards};
}

void share_out_widths(const Scenario& scenario, LayerCosts& costs) {
  const int shards = scenario.pipeline.tensor;
  costs.tensor = shards;
  const Model model = model_of(scenario);
  for (std::size_t at = 0; at < costs.layers.size(); ++at) {
    LayerCost& layer = costs.layers[at];
    const Bytes input = at == 0 ? layer.output : costs.layers[at - 1].output;
    share_out(layer, shards);
    if (layer.parameters > Bytes{})
      layer.tensor_all_reduces = {.times = model.layers.at(at).checkpointable ? 2 : 1,
                                  .bytes = std::min(input, layer.output)};
  }
}

/// Divides the experts among ranks. A rank has a part of the experts and receives their tokens from
/// as many pipelines, so it computes as much as before. The busiest rank computes more, by the
/// measured load imbalance.
void share_out_experts(const TransformerShape& shape, int ranks, LayerCosts& costs) {
  costs.expert = ranks;
  const auto counts = layers_of(training_of(shape, 1));
  for (std::size_t at = 0; at < counts.size(); ++at) {
    if (counts[at].expert_parameters == 0)
      continue;
    LayerCost& layer = costs.layers.at(at);
    const auto whole = static_cast<double>(layer.parameters.value);
    const double experts = whole * static_cast<double>(counts[at].expert_parameters) /
                           static_cast<double>(counts[at].parameters);
    layer.expert_parameters = whole_bytes(experts / ranks);
    layer.pipeline_gradients = layer.expert_parameters * (ranks - 1);
    layer.parameters = whole_bytes(whole - experts) + layer.expert_parameters;
    for (LayerTimes* const times : {static_cast<LayerTimes*>(&layer), &layer.contended})
      times->optimizer_step =
          times->optimizer_step * (static_cast<double>(layer.parameters.value) / whole);
    layer.expert_all_to_alls = {
        .times = 2,
        .bytes = whole_bytes(static_cast<double>(layer.output.value) *
                             shape.config.experts_per_token * (ranks - 1.0) / ranks)};
    slow_to_busiest(layer, ranks, counts[at].expert_flops / counts[at].forward_flops());
  }
}

/// Notes weights that several layers share, such as an embedding that is also the head's weight.
/// Each of these layers has a replica.
void note_tied(const Model& model, LayerCosts& costs) {
  for (std::size_t at = 0; at < model.layers.size() && at < costs.layers.size(); ++at) {
    const Layer& counted = model.layers[at];
    LayerCost& layer = costs.layers[at];
    if (counted.tied_parameters > 0 && layer.tied == Bytes{})
      layer.tied = whole_bytes(static_cast<double>(layer.parameters.value) *
                               static_cast<double>(counted.tied_parameters) /
                               static_cast<double>(counted.parameters));
  }
}

}  // namespace

LayerCosts costs_of_shards(const Scenario& scenario, LayerCosts costs) {
  const Pipeline& pipeline = scenario.pipeline;
  if (pipeline.tensor > 1 && costs.tensor == 1)
    share_out_widths(scenario, costs);
  const auto* const shape = transformer_of(scenario.model);
  if (pipeline.expert > 1 && costs.expert == 1 && shape != nullptr)
    share_out_experts(*shape, pipeline.expert, costs);
  if (shape == nullptr || shape->config.tied)
    note_tied(model_of(scenario.model), costs);
  return costs;
}

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

Cluster cluster_of_ranks(const Scenario& scenario) {
  Cluster cluster = scenario.cluster;
  if (!cluster.mixture)
    return cluster;
  cluster.mixture.reset();
  const bool own_memory = !cluster.rank_memory.empty();
  cluster.rank_speeds.resize(static_cast<std::size_t>(scenario.pipeline.ranks), 1);
  const StagePlaces places = stage_places(scenario.pipeline);
  const int of_rank = places.copies * places.shards;
  for (int rank = 0; rank < scenario.pipeline.ranks; ++rank) {
    const std::vector<int> devices = every(places.devices, rank * of_rank, 1, of_rank);
    double speed = std::numeric_limits<double>::infinity();
    Bytes memory;
    for (const int device : devices) {
      speed = std::min(speed, kind_speed(scenario.cluster, device));
      const NodeKind* const kind = kind_of(scenario.cluster, device);
      if (kind != nullptr && kind->device.memory > Bytes{})
        memory = memory > Bytes{} ? std::min(memory, kind->device.memory) : kind->device.memory;
    }
    cluster.rank_speeds[static_cast<std::size_t>(rank)] *= speed;
    if (!own_memory)
      cluster.rank_memory.push_back(static_cast<double>(memory.value));
  }
  return cluster;
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
