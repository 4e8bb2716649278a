#include "pipewright/search/calibration/run_costs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"

namespace pipewright::search {

namespace {

double bandwidth(plan::Bytes size, double seconds) {
  return static_cast<double>(size.value) / std::max(seconds, 1e-15);
}

/// Adds a part of the model to a stage.
void add(plan::StageCost& stage, const models::PassSeconds& part, double times = 1) {
  stage.forward += plan::Seconds{part.forward * times};
  stage.input_gradient += plan::Seconds{(part.backward - part.weight) * times};
  stage.weight_gradient += plan::Seconds{part.weight * times};
}

void set_stages(std::vector<plan::StageCost>& stages, const plan::TransformerConfig& model,
                const plan::Cut& cut, const models::TransformerTimes& times) {
  const std::size_t last = stages.size() - 1;
  const int in_front = model.leading_dense_layers();
  int before = 0;  // layers of earlier stages
  for (std::size_t at = 0; at <= last; ++at) {
    plan::StageCost& stage = stages[at];
    stage.forward = stage.input_gradient = stage.weight_gradient = {};
    stage.output = stage.input_gradient_bytes = times.hop_size;
    const int layers = cut.layers_of(static_cast<int>(at), model.layers);
    const int dense = std::clamp(in_front - before, 0, layers);
    before += layers;
    add(stage, times.layer, layers - dense);
    add(stage, times.dense_layer, dense);
    if (at == 0)
      add(stage, times.embedding);
    if (at == last)
      add(stage, times.head);
    const double end = last == 0    ? times.only_end_s
                       : at == 0    ? times.first_end_s
                       : at == last ? times.last_end_s
                                    : times.middle_end_s;
    const bool of_rank = at < static_cast<std::size_t>(cut.pipeline);  // once per rank
    stage.optimizer_step = plan::Seconds{end + (of_rank ? times.iteration_s : 0)};
  }
}

}  // namespace

void set_step_costs(sim::StepCosts& costs, const plan::Cluster& cluster,
                    const plan::TransformerConfig& model, const plan::Cut& cut,
                    const models::TransformerTimes& times) {
  costs.stages.resize(static_cast<std::size_t>(cut.stages()));
  set_stages(costs.stages, model, cut, times);
  costs.pair_overlap = std::max(cluster.within_node.tensor_parallel_overlap,
                                cluster.between_nodes.tensor_parallel_overlap);
  costs.cluster.devices_per_node = std::max(1, cluster.devices_per_node / cut.ranks_beside());
  costs.cluster.nodes = (cut.pipeline - 1) / costs.cluster.devices_per_node + 1;
  costs.cluster.within_node.bandwidth_per_s = bandwidth(times.hop_size, times.stage_transfer_s);
  costs.cluster.between_nodes.bandwidth_per_s = bandwidth(times.hop_size, times.network_hop_s);
}

bool on_several_nodes(const plan::Cluster& cluster, int devices) {
  return devices > cluster.devices_per_node;
}

void require_nodes(const plan::Cluster& cluster, int devices, const std::string& whose) {
  if (on_several_nodes(cluster, devices) && cluster.nodes < 2)
    throw plan::InputError(
        fmt::format("{} has {} GPUs, but the cluster has one node of {}: it needs "
                    "\"nodes\" and \"between_nodes\"",
                    whose, devices, cluster.devices_per_node));
}

sim::StepCosts step_costs(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                          const plan::Cut& cut) {
  sim::StepCosts costs;
  set_step_costs(costs, cluster, training.model, cut, models::times_on(cluster, training, cut));
  return costs;
}

double busy_of(const sim::StepCosts& costs, const std::vector<int>& stages, int microbatches) {
  double busy = 0;
  for (const int at : stages) {
    const plan::StageCost& stage = costs.stages[static_cast<std::size_t>(at)];
    busy += (stage.forward + stage.input_gradient + stage.weight_gradient).value * microbatches +
            stage.optimizer_step.value;
  }
  return busy;
}

}  // namespace pipewright::search
