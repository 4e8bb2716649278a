#include "pipewright/plan/stage_costs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

/// Adds up the layers [first, last) of one stage in the order in which they run.
class StageSum {
 public:
  explicit StageSum(const std::vector<LayerCost>& layers) : layers_(layers) {}

  StageCost run() {
    for (const LayerCost& layer : layers_)
      add_times(layer);
    add_forward_memory();
    add_backward_peak();
    return sum_;
  }

 private:
  void add_times(const LayerCost& layer) {
    sum_.forward += layer.forward;
    sum_.input_gradient += layer.input_gradient;
    sum_.weight_gradient += layer.weight_gradient;
    sum_.optimizer_step += layer.optimizer_step;
    sum_.parameters += layer.parameters;
    sum_.gradients += layer.parameters;
    sum_.optimizer_state += layer.parameters * adamw_states;
  }

  /// Whether the memory of layer `at`'s output outlives the forward: the layer itself or the one
  /// after saves it, or the stage ends with it. A view passes the question on.
  bool output_is_kept(std::size_t at) const {
    if (layers_[at].saves_output || at + 1 == layers_.size())
      return true;
    if (layers_[at + 1].saves_input)
      return true;
    return layers_[at + 1].output_is_view && output_is_kept(at + 1);
  }

  /// The part of the output that `activation` does not hold already.
  static Bytes unsaved_output(const LayerCost& layer) {
    return layer.saves_output || layer.output_is_view ? Bytes{} : layer.output;
  }

  /// While a layer runs, its input is still alive, kept or not: the part of it that `activation`
  /// does not hold. A view's memory is that of the layer before.
  Bytes unkept_input(std::size_t at) const {
    while (at-- > 0) {
      if (output_is_kept(at))
        return {};
      if (!layers_[at].output_is_view)
        return unsaved_output(layers_[at]);
    }
    return {};
  }

  void add_forward_memory() {
    for (std::size_t at = 0; at < layers_.size(); ++at) {
      sum_.forward_peak = std::max(sum_.forward_peak,
                                   sum_.activation + unkept_input(at) + layers_[at].forward_peak);
      sum_.activation += layers_[at].activation;
      held_in_backward_.push_back(sum_.activation);
      if (output_is_kept(at))
        sum_.activation += unsaved_output(layers_[at]);
    }
    sum_.forward_peak = std::max(sum_.forward_peak, sum_.activation);
  }

  /// Layer `at` runs backward when those after it have freed theirs, and with them its output if it
  /// did not save that itself. The stage's own output stays to the end, and the gradient of that
  /// comes from the stage after, on whose account it is.
  void add_backward_peak() {
    std::size_t maker = layers_.size() - 1;  // of the memory of the stage's own output
    while (maker > 0 && layers_[maker].output_is_view)
      --maker;
    const Bytes own_output = layers_[maker].output_is_view ? Bytes{} : layers_[maker].output;

    for (std::size_t at = layers_.size(); at-- > 0;) {
      Bytes held = held_in_backward_[at] + layers_[at].backward_peak;
      if (at < maker || (at == maker && !layers_[at].saves_output))
        held += own_output;
      if (at + 1 == layers_.size())
        held -= layers_[at].output;
      sum_.backward_peak = std::max(sum_.backward_peak, held - sum_.activation);
    }
  }

  const std::vector<LayerCost>& layers_;
  StageCost sum_;
  std::vector<Bytes> held_in_backward_;  // activation of the stage up to and with each layer
};

}  // namespace

std::vector<StageCost> stage_costs(const LayerCosts& costs, const Partition& partition) {
  const auto layers = static_cast<int>(costs.layers.size());
  if (layer_count(partition) != layers)
    throw InputError(fmt::format("the partition {} is for {} layers, but costs are given for {}",
                                 to_string(partition.boundaries), layer_count(partition), layers));
  for (std::size_t stage = 1; stage < partition.boundaries.size(); ++stage)
    if (partition.boundaries[stage] <= partition.boundaries[stage - 1])
      throw InputError(fmt::format("stage {} of the partition {} has no layer", stage - 1,
                                   to_string(partition.boundaries)));
  std::vector<StageCost> stages;
  const int count = stage_count(partition);
  for (int stage = 0; stage < count; ++stage) {
    const auto begin = costs.layers.begin() + partition.boundaries[static_cast<std::size_t>(stage)];
    const auto end =
        costs.layers.begin() + partition.boundaries[static_cast<std::size_t>(stage) + 1];
    std::vector<LayerCost> part(begin, end);
    const Bytes output = part.back().output;
    const bool last = stage + 1 == count;
    if (last)
      part.push_back(costs.loss);

    StageCost sum = StageSum(part).run();
    if (stage == 0)
      sum.load = costs.load;
    if (stage == 0)
      sum.loaded += costs.input;
    if (last)
      sum.loaded += costs.target;
    if (!last)
      sum.output = output;
    if (stage > 0)
      sum.input_gradient_bytes = stages.back().output;
    stages.push_back(sum);
  }
  return stages;
}

Bytes stage_memory(const StageCost& cost, int in_flight) {
  const Bytes held = cost.loaded + cost.activation;
  const Bytes forward = held * (in_flight - 1) + cost.loaded + cost.forward_peak;
  const Bytes backward = held * in_flight + cost.backward_peak;
  return cost.parameters + cost.gradients + cost.optimizer_state + std::max(forward, backward);
}

}  // namespace pipewright::plan
