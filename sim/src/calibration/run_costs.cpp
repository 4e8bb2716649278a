#include "pipewright/sim/calibration/run_costs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"

namespace pipewright::sim {

using plan::TrainingRun;

namespace {

double bandwidth(plan::Bytes size, double seconds) {
  return static_cast<double>(size.value) / std::max(seconds, 1e-15);
}

/// Adds a part of the model to a stage.
void add(plan::StageCost& stage, const plan::PassSeconds& part, double times = 1) {
  stage.forward += plan::Seconds{part.forward * times};
  stage.input_gradient += plan::Seconds{part.backward * times / 2};
  stage.weight_gradient += plan::Seconds{part.backward * times / 2};
}

void set_stages(std::vector<plan::StageCost>& stages, const plan::TrainingRun& run,
                const plan::TransformerTimes& times, double iteration_s, plan::Bytes hop) {
  const std::size_t last = stages.size() - 1;
  int before = 0;  // layers of earlier stages
  for (std::size_t at = 0; at <= last; ++at) {
    plan::StageCost& stage = stages[at];
    stage.forward = stage.input_gradient = stage.weight_gradient = {};
    stage.output = stage.input_gradient_bytes = hop;
    const int layers = run.layers_of(static_cast<int>(at));
    const int dense = std::clamp(run.dense_layers - before, 0, layers);
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
    const bool of_rank = at < static_cast<std::size_t>(run.pipeline);  // once for each rank
    stage.optimizer_step = plan::Seconds{end + (of_rank ? iteration_s : 0)};
  }
}

}  // namespace

void set_run_costs(StepCosts& costs, const plan::Cluster& cluster, const TrainingRun& run,
                   const plan::TransformerWork& work, const plan::MachineConstants& constants,
                   const plan::LayerFactors& factors) {
  const plan::TransformerTimes times = plan::transformer_times(work, constants, factors);
  costs.stages.resize(static_cast<std::size_t>(run.stages()));
  set_stages(costs.stages, run, times, constants.iteration_s, work.hop_size);
  const int of_stage = run.tensor * run.data * run.context;
  costs.cluster.devices_per_node = std::max(1, cluster.devices_per_node / of_stage);
  costs.cluster.nodes = (run.pipeline - 1) / costs.cluster.devices_per_node + 1;
  costs.cluster.within_node.bandwidth_per_s = bandwidth(work.hop_size, times.hop_s);
  costs.cluster.between_nodes.bandwidth_per_s = bandwidth(work.hop_size, times.network_hop_s);
}

bool on_several_nodes(const plan::Cluster& cluster, const TrainingRun& run) {
  return run.gpus > cluster.devices_per_node;
}

void require_figures(const plan::Cluster& cluster, const std::vector<TrainingRun>& runs) {
  if (cluster.device.flops_per_s <= 0)
    throw plan::InputError("the cluster's device.flops_per_s is not known: times need the peak");
  if (cluster.device.memory_bandwidth_per_s <= 0)
    throw plan::InputError(
        "the cluster's device.memory_bandwidth_per_s is not known: times need it");
  for (const TrainingRun& run : runs)
    if (on_several_nodes(cluster, run) && cluster.nodes < 2)
      throw plan::InputError(
          fmt::format("run {} has {} GPUs, but the cluster has one node of {}: it needs "
                      "\"nodes\" and \"between_nodes\"",
                      run.id, run.gpus, cluster.devices_per_node));
}

const plan::LayerClass* class_in(const std::vector<plan::LayerClass>& classes,
                                 const TrainingRun& run) {
  const plan::LayerClass own = plan::layer_class_of(run);
  const auto found =
      std::find_if(classes.begin(), classes.end(),
                   [&](const plan::LayerClass& known) { return plan::same_layers(known, own); });
  return found == classes.end() ? nullptr : &*found;
}

plan::LayerFactors factors_of(const plan::LayerClass& known) {
  return {.layer = known.layer, .embedding = known.embedding, .head = known.head};
}

plan::LayerFactors factors_in(const std::vector<plan::LayerClass>& classes,
                              const TrainingRun& run) {
  const plan::LayerClass* const known = class_in(classes, run);
  return known == nullptr ? plan::LayerFactors{} : factors_of(*known);
}

PricedRun priced(const plan::Cluster& cluster, const TrainingRun& run) {
  const plan::Machine machine = cluster.machine.value_or(plan::Machine{});
  const plan::LayerFactors factors = factors_in(machine.layers, run);
  PricedRun priced{
      .work = plan::transformer_work(cluster, run, run.recompute), .times = {}, .steps = {}};
  priced.times = plan::transformer_times(priced.work, machine.constants, factors);
  set_run_costs(priced.steps, cluster, run, priced.work, machine.constants, factors);
  return priced;
}

double busy_of(const StepCosts& costs, const std::vector<int>& stages, int microbatches) {
  double busy = 0;
  for (const int at : stages) {
    const plan::StageCost& stage = costs.stages[static_cast<std::size_t>(at)];
    busy += (stage.forward + stage.input_gradient + stage.weight_gradient).value * microbatches +
            stage.optimizer_step.value;
  }
  return busy;
}

}  // namespace pipewright::sim
