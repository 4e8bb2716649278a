#include "pipewright/models/transformer/transformer_costs.hpp"

#include <algorithm>

#include "pipewright/models/transformer/transformer_memory.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"

namespace pipewright::models {
namespace {

class CostsOfLayers {
 public:
  CostsOfLayers(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                const plan::Cut& cut)
      : cluster_(cluster),
        training_(training),
        cut_(cut),
        machine_(machine_of(cluster)),
        work_(transformer_work(cluster, training, cut)),
        times_(priced(work_, machine_, layer_class_of(training, cut))) {}

  plan::LayerCosts all() const {
    plan::LayerCosts costs;
    costs.device = cluster_.device.name;
    costs.dtype = "bfloat16";
    costs.software = analytic_software;
    costs.microbatch_size = cut_.microbatch;
    costs.shards_by_layer = true;
    costs.tensor = cut_.tensor, costs.context = cut_.context, costs.expert = cut_.expert;
    costs.workspaces = plan::whole_bytes(machine_.constants.context_bytes);
    costs.iteration = {times_.iteration_s};
    int block = 0;
    for (const plan::TransformerLayer& layer : layers_of(training_, cut_))
      costs.layers.push_back(cost_of(layer, block));
    costs.loss.name = "loss";
    return costs;
  }

 private:
  plan::LayerCost cost_of(const plan::TransformerLayer& layer, int& block) const {
    plan::LayerCost cost;
    cost.name = layer.name;
    cost.parameters = layer.weights;
    cost.expert_parameters =
        plan::whole_bytes(2.0 * static_cast<double>(layer.device_expert_parameters));
    cost.optimizer_step = {optimizer_s(cluster_, static_cast<double>(layer.device_parameters)) /
                           machine_.constants.optimizer_efficiency};
    cost.saves_output = true;
    const bool is_head = layer.kind == plan::TransformerLayerKind::Head;
    cost.workspace = plan::whole_bytes(
        bytes_at_peak(work_at_peak(training_, cut_, is_head), machine_.constants));
    if (!is_head)
      cost.output = plan::whole_bytes(static_cast<double>(work_.hop_size.value) / tokens_cut());
    if (layer.kind == plan::TransformerLayerKind::Embedding)
      set_passes(cost, times_.embedding, 0, 0);
    else if (is_head)
      set_passes(cost, times_.head, 0, 0);
    else
      make_block(
          cost, block++ < training_.model.leading_dense_layers() || !training_.model.has_mixture());
    return cost;
  }

  /// Returns the number of ranks among which the tokens between layers are divided.
  int tokens_cut() const { return cut_.sequence_parallel ? cut_.tensor : 1; }

  void make_block(plan::LayerCost& cost, bool is_dense) const {
    const bool is_in_front = is_dense && training_.model.has_mixture();
    const LayerWork& work = is_in_front ? work_.dense_layer : work_.layer;
    cost.tensor_all_reduces = work_.sums;
    cost.expert_all_to_alls = work.experts;
    cost.context_all_gathers = work.contexts;
    const PassSeconds& passes = is_in_front ? times_.dense_layer : times_.layer;
    set_passes(cost, passes, again(passes), layer_communication_s(work_, work, machine_.constants));
    const LayerKept kept = layer_kept(training_, cut_, is_dense);
    cost.activation = cost.forward_peak = plan::whole_bytes(kept.all);
    cost.selective_activation = plan::whole_bytes(kept.scores);
    cost.saves_input = cut_.recompute == plan::RecomputeMode::Full;
  }

  /// Sets the passes without recomputation, which is part of the Program, and without
  /// tensor-parallel communication.
  void set_passes(plan::LayerCost& cost, const PassSeconds& passes, double again,
                  double shards) const {
    const double backward = std::max(0.0, passes.backward - again - shards);
    cost.forward = {std::max(0.0, passes.forward - shards)};
    cost.weight_gradient = {std::min(passes.weight, backward)};
    cost.input_gradient = {backward - cost.weight_gradient.value};
    cost.selective_forward = {passes.core};
  }

  double again(const PassSeconds& passes) const {
    switch (cut_.recompute) {
      case plan::RecomputeMode::None:
        return 0;
      case plan::RecomputeMode::Selective:
        return passes.core;
      case plan::RecomputeMode::Full:
        return passes.forward;
    }
    return 0;
  }

  const plan::Cluster& cluster_;
  const plan::TransformerTraining& training_;
  const plan::Cut& cut_;
  const plan::Machine machine_;
  const TransformerWork work_;
  const TransformerTimes times_;
};

}  // namespace

plan::Machine machine_of(const plan::Cluster& cluster) {
  return cluster.machine.value_or(plan::Machine{});
}

const plan::LayerClass* class_in(const std::vector<plan::LayerClass>& classes,
                                 const plan::LayerClass& wanted) {
  const auto found =
      std::find_if(classes.begin(), classes.end(),
                   [&](const plan::LayerClass& known) { return same_layers(known, wanted); });
  return found == classes.end() ? nullptr : &*found;
}

LayerFactors factors_of(const plan::LayerClass& known) {
  return {.layer = known.layer, .embedding = known.embedding, .head = known.head};
}

TransformerTimes priced(const TransformerWork& work, const plan::Machine& machine,
                        const plan::LayerClass& layers) {
  const plan::LayerClass* const known = class_in(machine.layers, layers);
  return transformer_times(work, machine.constants,
                           known == nullptr ? LayerFactors{} : factors_of(*known));
}

TransformerTimes times_on(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                          const plan::Cut& cut) {
  return priced(transformer_work(cluster, training, cut), machine_of(cluster),
                layer_class_of(training, cut));
}

void require_figures(const plan::Cluster& cluster) {
  if (cluster.device.flops_per_s <= 0)
    throw plan::InputError("the cluster's device.flops_per_s is not known: times need the peak");
  if (cluster.device.memory_bandwidth_per_s <= 0)
    throw plan::InputError(
        "the cluster's device.memory_bandwidth_per_s is not known: times need it");
}

plan::LayerCosts transformer_costs(const plan::Cluster& cluster,
                                   const plan::TransformerTraining& training,
                                   const plan::Cut& cut) {
  require_figures(cluster);
  return CostsOfLayers(cluster, training, cut).all();
}

}  // namespace pipewright::models
