#include "pipewright/plan/costs/stage_costs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

Bytes input_gradient_peak(const LayerCost& layer) {
  return layer.input_gradient_peak > Bytes{} ? layer.input_gradient_peak : layer.backward_peak;
}

Bytes weight_gradient_peak(const LayerCost& layer) {
  return layer.weight_gradient_peak > Bytes{} ? layer.weight_gradient_peak : layer.backward_peak;
}

Bytes forward_peak_without_graph(const LayerCost& layer) {
  return layer.forward_peak_without_graph > Bytes{} ? layer.forward_peak_without_graph
                                                    : layer.forward_peak;
}

/// Returns true for a view that saves nothing. It has no memory of its own, since its output is
/// part of an earlier layer's output.
bool is_bare_view(const LayerCost& layer) {
  return layer.output_is_view && layer.activation == Bytes{};
}

/// Returns the bytes of the output that `activation` does not already contain.
Bytes unsaved_output(const LayerCost& layer) {
  return layer.saves_output || layer.output_is_view ? Bytes{} : layer.output;
}

/// Removes the gradient of the stage's output, which the next stage accounts for. Layer costs count
/// the gradient of a layer's output in the layer, so it must be removed from the last layer of the
/// stage.
void leave_out_gradient_from_after(std::vector<LayerCost>& layers) {
  const auto last = std::find_if_not(layers.rbegin(), layers.rend(), is_bare_view);
  if (last == layers.rend() || !last->output_gradient_for_weights)
    return;
  const Bytes counted = std::min(last->output, last->gradients_for_weights);
  last->gradients_for_weights -= counted;
  last->freed_by_input_gradient =
      std::min(last->activation, last->freed_by_input_gradient + last->output - counted);
}

/// Sums the layers [first, last) of one stage in the order in which they run.
class StageSum {
 public:
  explicit StageSum(std::vector<LayerCost> layers) : layers_(std::move(layers)) {}

  StageCost run() {
    for (const LayerCost& layer : layers_)
      add_times(layer);
    sum_.parameters -= shared_within();
    add_forward_memory();
    add_backward_peak();
    add_split_peaks();
    sum_.output_alone = unsaved_output(layers_[maker_of_output()]);
    sum_.input_for_weights = first_of_its_own(layers_.begin(), layers_.end()).input_for_weights;
    sum_.output_gradient_for_weights =
        first_of_its_own(layers_.rbegin(), layers_.rend()).output_gradient_for_weights;
    return sum_;
  }

 private:
  void add_times(const LayerCost& layer) {
    sum_.forward += layer.forward;
    sum_.input_gradient += layer.input_gradient;
    sum_.weight_gradient += layer.weight_gradient;
    sum_.optimizer_step += layer.optimizer_step;
    sum_.splitting += layer.splitting;
    sum_.shards += layer.shards;
    sum_.backward_shards += layer.backward_shards;
    sum_.parameters += layer.parameters;
    sum_.freed_by_input_gradient += layer.freed_by_input_gradient;
    sum_.gradients_for_weights += layer.gradients_for_weights;
    sum_.tied = std::max(sum_.tied, layer.tied);
    sum_.expert_parameters += layer.expert_parameters;
    sum_.pipeline_gradients += layer.pipeline_gradients;
    sum_.workspace = std::max(sum_.workspace, layer.workspace);
  }

  /// Returns what layers that share a weight count more than once, although the stage stores it
  /// once.
  Bytes shared_within() const {
    Bytes counted;
    for (const LayerCost& layer : layers_)
      counted += layer.tied;
    return counted - sum_.tied;
  }

  /// Returns true if the output of layer `at` is kept after the forward. It is if the layer or the
  /// next one saves it, or if it is the output of the stage. For a view the layer after it decides.
  bool output_is_kept(std::size_t at) const {
    if (layers_[at].saves_output || at + 1 == layers_.size())
      return true;
    if (layers_[at + 1].saves_input)
      return true;
    return layers_[at + 1].output_is_view && output_is_kept(at + 1);
  }

  /// Returns the first layer that is not a mere view.
  template <class Iterator>
  static const LayerCost& first_of_its_own(Iterator begin, Iterator end) {
    const Iterator found = std::find_if_not(begin, end, is_bare_view);
    return found == end ? *begin : *found;
  }

  /// Returns the layer whose memory holds the stage's output.
  std::size_t maker_of_output() const {
    std::size_t maker = layers_.size() - 1;
    while (maker > 0 && layers_[maker].output_is_view)
      --maker;
    return maker;
  }

  /// Returns the bytes of layer `at`'s input that are alive while it runs, but are not part of
  /// `activation`. The output of a view is in the memory of an earlier layer.
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

  /// Computes the peak of the backward. When layer `at` runs backward, the layers after it have
  /// freed their activations, and its output too unless it saves it. The stage's output stays to
  /// the end. The gradient of the stage's output comes from the next stage, which accounts for it.
  void add_backward_peak() {
    const std::size_t maker = maker_of_output();
    const Bytes own_output = layers_[maker].output_is_view ? Bytes{} : layers_[maker].output;

    Bytes gradients;  // of the layers after it
    for (std::size_t at = layers_.size(); at-- > 0;) {
      Bytes held = held_in_backward_[at] + layers_[at].backward_peak;
      if (at < maker || (at == maker && !layers_[at].saves_output))
        held += own_output;
      if (at + 1 == layers_.size())
        held -= layers_[at].output;
      sum_.backward_peak = std::max(sum_.backward_peak, held - sum_.activation);
      sum_.backward_peak_apart =
          std::max(sum_.backward_peak_apart, held + gradients - sum_.activation);
      gradients += layers_[at].parameters;
    }
  }

  /// Computes the peaks of split backwards. When layer `at` runs one half, the layers after it have
  /// freed what that half frees, and kept what the other half needs.
  void add_split_peaks() {
    Bytes freed, left;     // by the layers after it
    Bytes gradients_left;  // left by the layers that have run I
    // By the layers after it: gradients of parameters, and activations freed by W.
    Bytes gradients, saved;
    for (std::size_t at = layers_.size(); at-- > 0;) {
      const LayerCost& layer = layers_[at];
      Bytes peak = input_gradient_peak(layer);
      if (at + 1 == layers_.size())
        peak -= layer.output;
      sum_.input_gradient_peak = std::max(sum_.input_gradient_peak, peak - freed + gradients_left);
      sum_.weight_gradient_peak =
          std::max(sum_.weight_gradient_peak, weight_gradient_peak(layer) - left);
      // W starts with all gradients that I left, and keeps them to its end.
      sum_.weight_gradient_peak_apart =
          std::max(sum_.weight_gradient_peak_apart,
                   std::max(weight_gradient_peak(layer), layer.parameters) - saved + gradients);
      saved += layer.activation - layer.freed_by_input_gradient;
      gradients += layer.parameters;
      freed += layer.freed_by_input_gradient;
      gradients_left += layer.gradients_for_weights;
      left += layer.activation - layer.freed_by_input_gradient + layer.gradients_for_weights;
    }
  }

  const std::vector<LayerCost> layers_;
  StageCost sum_;
  // By layer: activations of the stage up to and including that layer.
  std::vector<Bytes> held_in_backward_;
};

/// Returns the part of the ZeRO-partitioned state that one data-parallel replica holds. Experts
/// have fewer replicas.
double shard_share(const StageCost& stage, const TrainingMemory& training) {
  if (training.shards == 1 || stage.parameters == Bytes{})
    return 1.0 / training.shards;
  const double experts = static_cast<double>(stage.expert_parameters.value) /
                         static_cast<double>(stage.parameters.value);
  const int copies_of_experts = std::max(1, training.shards / training.expert);
  return (1 - experts) / training.shards + experts / copies_of_experts;
}

/// Derives all static memory from the measured size of the parameters.
void set_standing(StageCost& stage, const LayerCosts& costs, const TrainingMemory& training) {
  constexpr int half = 2;
  constexpr int single = 4;
  const int states = states_of(training.optimizer);
  if (is_mixed(training.precision)) {
    const int measured = bytes_per_parameter(costs).value_or(0);
    if (measured == 0)
      throw InputError(fmt::format(
          "mixed precision needs to know how many parameters there are, but costs are for the type "
          "\"{}\" (possible: float64, float32, float16 or bfloat16)",
          costs.dtype));
    stage.optimizer_state = {stage.parameters.value / measured * single * (1 + states)};
    stage.parameters = {stage.parameters.value / measured * half};
    stage.tied = {stage.tied.value / measured * half};
    stage.expert_parameters = {stage.expert_parameters.value / measured * half};
    stage.pipeline_gradients = {stage.pipeline_gradients.value / measured * half};
  } else {
    stage.optimizer_state = stage.parameters * states;
  }
  const int wider = is_mixed(training.precision) && training.fp32_gradients ? single / half : 1;
  stage.pipeline_gradients = stage.pipeline_gradients * wider;
  stage.gradients = stage.parameters * wider + stage.pipeline_gradients;
  if (stage.gradients != stage.parameters)
    stage.sent_gradients = stage.parameters;
  const double share = shard_share(stage, training);
  const auto shard_of = [&](Bytes whole) {
    return training.expert == 1 ? Bytes{(whole.value + training.shards - 1) / training.shards}
                                : whole_bytes(static_cast<double>(whole.value) * share);
  };
  if (training.zero >= 2)
    // The gradients of different pipelines have been summed by then.
    stage.gradients_elsewhere =
        stage.gradients - shard_of(stage.gradients - stage.pipeline_gradients);
  if (training.zero >= 3)
    stage.parameters_elsewhere = stage.parameters - shard_of(stage.parameters);
  stage.optimizer_state = shard_of(stage.optimizer_state);
  stage.optimizer_step = stage.optimizer_step * share;
}

/// Returns the share of the stage's parameters in its two largest layers.
double two_of(const std::vector<LayerCost>& layers) {
  Bytes all, largest;
  for (const LayerCost& layer : layers) {
    all += layer.parameters;
    largest = std::max(largest, layer.parameters);
  }
  return all == Bytes{} ? 1
                        : std::min(1.0, 2 * static_cast<double>(largest.value) /
                                            static_cast<double>(all.value));
}

LayerCost selectively_recomputed(LayerCost layer) {
  layer.activation -= layer.selective_activation;
  layer.freed_by_input_gradient =
      std::max(Bytes{}, layer.freed_by_input_gradient - layer.selective_activation);
  layer.backward_peak += layer.selective_activation;
  if (layer.input_gradient_peak > Bytes{})
    layer.input_gradient_peak += layer.selective_activation;
  layer.input_gradient += layer.selective_forward;
  return layer;
}

/// Returns the bytes that recomputing a layer allocates.
Bytes recomputed_bytes(const LayerCost& layer) {
  return layer.activation + (layer.saves_output ? Bytes{} : layer.output);
}

/// Merges two neighboring layers into one. The merged layer accounts for the gradient of its output
/// again.
LayerCost joined(const LayerCost& first, const LayerCost& second) {
  const StageCost sum = StageSum({first, second}).run();
  LayerCost layer;
  layer.forward = sum.forward;
  layer.parameters = sum.parameters;
  layer.activation = sum.activation;
  layer.output = second.output;
  layer.forward_peak = sum.forward_peak;
  layer.forward_peak_without_graph =
      std::max(forward_peak_without_graph(first), (first.output_is_view ? Bytes{} : first.output) +
                                                      forward_peak_without_graph(second));
  layer.backward_peak = sum.backward_peak + second.output;
  layer.saves_input = first.saves_input;
  layer.saves_output = true;
  layer.freed_by_input_gradient = sum.freed_by_input_gradient;
  layer.gradients_for_weights = sum.gradients_for_weights;
  layer.input_for_weights = sum.input_for_weights;
  layer.input_gradient_peak = sum.input_gradient_peak + second.output;
  layer.weight_gradient_peak = sum.weight_gradient_peak;
  return layer;
}

/// Returns the peak of a lone input gradient above what R has left. `layers` are as
/// `recomputed_cost` returns them.
Bytes rerun_input_gradient_peak(const std::vector<LayerCost>& layers, Bytes remade_by_r) {
  Bytes peak, before;  // left by the layers after it, less what they freed
  for (std::size_t at = layers.size(); at-- > 0;) {
    const LayerCost& layer = layers[at];
    if (is_bare_view(layer))
      continue;
    const bool last = at + 1 == layers.size();
    const Bytes own = recomputed_bytes(layer) + input_gradient_peak(layer);
    peak = std::max(peak, last ? own - remade_by_r - layer.output
                               : before + std::max(layer.output + layer.forward_peak, own));
    before += layer.gradients_for_weights - layer.freed_by_input_gradient;
    if (last)
      before -= unsaved_output(layer);  // R has already made the rest
    else
      before += layer.activation;
  }
  return peak;
}

/// Returns the costs of a layer that saves only its input and recomputes its forward within its
/// backward.
LayerCost recomputed_cost(LayerCost layer) {
  if (is_bare_view(layer))
    return layer;
  layer.backward_peak =
      std::max(layer.output + layer.forward_peak, recomputed_bytes(layer) + layer.backward_peak);
  layer.forward_peak = forward_peak_without_graph(layer);
  layer.activation = {};
  layer.freed_by_input_gradient = {};
  layer.saves_input = true;
  layer.saves_output = false;
  return layer;
}

/// Returns the share of the last layer, which runs first in a backward, in an action that takes
/// `all`.
double share_of(Seconds last, Seconds all) { return all > Seconds{} ? last / all : 1; }

void set_shares(const std::vector<LayerCost>& layers, RecomputeCost& rerun) {
  Seconds input_gradient, weight_gradient, splitting;
  for (const LayerCost& layer : layers) {
    input_gradient += layer.input_gradient;
    weight_gradient += layer.weight_gradient;
    splitting += layer.splitting;
  }
  const LayerCost& last = layers.back();
  rerun.backward_share = share_of(last.input_gradient + last.weight_gradient - last.splitting,
                                  input_gradient + weight_gradient - splitting + rerun.others);
  rerun.input_gradient_share = share_of(last.input_gradient, input_gradient + rerun.others);
  rerun.weight_gradient_share = share_of(last.weight_gradient, weight_gradient);
}

/// Returns the recomputation costs of a stage with these layers. On the last stage, the last layer
/// includes the loss.
RecomputeCost rerun_by_layers(const std::vector<LayerCost>& layers, Bytes output) {
  std::vector<LayerCost> again;
  RecomputeCost rerun;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    again.push_back(recomputed_cost(layers[l]));
    if (l + 1 == layers.size() || is_bare_view(layers[l]))
      continue;
    rerun.others += layers[l].forward;
    rerun.left_for_weights += layers[l].activation - layers[l].freed_by_input_gradient;
  }
  const LayerCost& last = layers.back();
  const StageCost sum = StageSum(again).run();
  rerun.first = last.forward;
  rerun.kept = sum.activation - output;
  rerun.forward_peak = sum.forward_peak;
  rerun.recomputed_bytes = is_bare_view(last) ? output : recomputed_bytes(last);
  rerun.freed_by_input_gradient = last.freed_by_input_gradient;
  rerun.rerun_peak = std::max(rerun.recomputed_bytes, last.forward_peak);
  rerun.backward_peak = std::max(Bytes{}, sum.backward_peak - rerun.recomputed_bytes);
  rerun.backward_peak_apart = std::max(Bytes{}, sum.backward_peak_apart - rerun.recomputed_bytes);
  rerun.input_gradient_peak = rerun_input_gradient_peak(layers, rerun.recomputed_bytes);
  set_shares(layers, rerun);
  return rerun;
}

void require_fit(const LayerCosts& costs, const Partition& partition) {
  const auto layers = static_cast<int>(costs.layers.size());
  if (layer_count(partition) != layers)
    throw InputError(fmt::format("the partition {} is for {} layers, but costs are given for {}",
                                 to_string(partition.boundaries), layer_count(partition), layers));
  for (std::size_t stage = 1; stage < partition.boundaries.size(); ++stage)
    if (partition.boundaries[stage] <= partition.boundaries[stage - 1])
      throw InputError(fmt::format("stage {} of the partition {} has no layer", stage - 1,
                                   to_string(partition.boundaries)));
}

std::vector<LayerCost> layers_of(const LayerCosts& costs, const Partition& partition, int stage) {
  const auto at = static_cast<std::size_t>(stage);
  return {costs.layers.begin() + partition.boundaries[at],
          costs.layers.begin() + partition.boundaries[at + 1]};
}

}  // namespace

namespace {

/// Adds the time and the memory of loading the first stage's inputs and the last stage's targets.
void add_loads(StageCost& sum, const LayerCosts& costs, bool first, bool last) {
  if (first) {
    sum.load += costs.load;
    sum.loaded += costs.input;
  }
  if (last) {
    sum.load += costs.load_target;
    sum.loaded += costs.target;
  }
}

}  // namespace

std::vector<StageCost> stage_costs(const LayerCosts& costs, const Partition& partition,
                                   const TrainingMemory& training) {
  require_fit(costs, partition);
  std::vector<StageCost> stages;
  const int count = stage_count(partition);
  for (int stage = 0; stage < count; ++stage) {
    std::vector<LayerCost> part = layers_of(costs, partition, stage);
    const Bytes output = part.back().output;
    if (training.recompute == RecomputeMode::Selective)
      std::transform(part.begin(), part.end(), part.begin(), selectively_recomputed);
    const bool last = stage + 1 == count;
    if (!last)
      leave_out_gradient_from_after(part);
    std::vector<LayerCost> by_layers = part;
    if (last) {
      by_layers.back() = joined(part.back(), costs.loss);
      part.push_back(costs.loss);
    }

    StageCost sum = StageSum(part).run();
    set_standing(sum, costs, training);
    if (costs.shards_by_layer)
      sum.whole_at_once = two_of(part);
    add_loads(sum, costs, stage == 0, last);
    if (training.reads_ahead && !costs.reads_on_rank)
      sum.load = wait_for_read(sum.load, sum);
    if (!last)
      sum.output = output;
    sum.rerun = training.recompute == RecomputeMode::Full ? rerun_by_layers(by_layers, sum.output)
                                                          : rerun_at_once(sum);
    if (stage > 0)
      sum.input_gradient_bytes = stages.back().output;
    stages.push_back(sum);
  }
  return stages;
}

Seconds wait_for_read(Seconds read, const StageCost& cost) {
  return std::max(Seconds{}, read - cost.forward - backward_time(cost));
}

RecomputeCost rerun_at_once(const StageCost& cost) {
  return {.first = cost.forward,
          .forward_peak = cost.forward_peak,
          .recomputed_bytes = cost.activation,
          .freed_by_input_gradient = cost.freed_by_input_gradient,
          .rerun_peak = cost.forward_peak,
          .backward_peak = cost.backward_peak,
          .backward_peak_apart = cost.backward_peak_apart,
          .input_gradient_peak = cost.input_gradient_peak};
}

Bytes stage_memory(const StageCost& cost, int in_flight) {
  const Bytes held = cost.loaded + cost.activation;
  const Bytes forward = held * (in_flight - 1) + cost.loaded + cost.forward_peak;
  const Bytes backward = held * in_flight + cost.backward_peak;
  return standing(cost) + std::max(forward, backward);
}

Seconds backward_time(const StageCost& cost) {
  return cost.input_gradient + cost.weight_gradient - cost.splitting;
}

Seconds time_of(Work work, const StageCost& cost) {
  switch (work) {
    case Work::None:
      return {};
    case Work::Load:
      return cost.load;
    case Work::Forward:
      return cost.forward;
    case Work::Rerun:
      return cost.rerun.first;
    case Work::InputGradient:
      return cost.input_gradient;
    case Work::WeightGradient:
      return cost.weight_gradient;
    case Work::Backward:
      return backward_time(cost);
    case Work::OptimizerStep:
      return cost.optimizer_step;
  }
  return {};
}

Bytes bytes_of(Payload payload, const StageCost& cost) {
  switch (payload) {
    case Payload::None:
    case Payload::Numbers:
      return {};
    case Payload::Activation:
      return cost.output;
    case Payload::InputGradient:
      return cost.input_gradient_bytes;
    case Payload::Gradients:
      return cost.sent_gradients > Bytes{} ? cost.sent_gradients : cost.gradients;
    case Payload::Parameters:
      return cost.parameters;
    case Payload::Tied:
      return cost.tied;
  }
  return {};
}

Bytes standing(const StageCost& cost) {
  return standing_parameters(cost) + standing_gradients(cost) + cost.optimizer_state;
}

}  // namespace pipewright::plan
