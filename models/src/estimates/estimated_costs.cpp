#include "pipewright/models/estimates/estimated_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/plan/model/executor_layers.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"

namespace pipewright::models {
namespace {

using plan::Seconds;

constexpr const char* software = "estimated";
constexpr double value_bytes = 4;  // float32

struct Device {
  double flops_per_s = 0;  // achieved
  double bytes_per_s = 0;

  Seconds time(double flops, double bytes) const {
    return {std::max(flops / flops_per_s, bytes / bytes_per_s)};
  }
};

Device device_of(const plan::Scenario& scenario) {
  const plan::Device& device = scenario.cluster.device;
  const double peak = device.flops_per_s > 0 ? device.flops_per_s : assumed_flops_per_s;
  const double bandwidth = device.memory_bandwidth_per_s > 0 ? device.memory_bandwidth_per_s
                                                             : assumed_memory_bandwidth_per_s;
  return {assumed_efficiency * peak, bandwidth};
}

plan::Cluster with_known_device(plan::Cluster cluster) {
  plan::Device& device = cluster.device;
  if (!(device.flops_per_s > 0))
    device.flops_per_s = assumed_flops_per_s;
  if (!(device.memory_bandwidth_per_s > 0))
    device.memory_bandwidth_per_s = assumed_memory_bandwidth_per_s;
  return cluster;
}

/// Returns the number of elements of one sample.
double values_of(const std::vector<int>& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
}

/// Returns the bytes moved by AdamW with its weights, gradients and two moments: it reads three
/// besides the gradient, and writes three.
double optimizer_bytes(const plan::Layer& layer) {
  return 7 * static_cast<double>(layer.parameter_bytes.value);
}

plan::LayerCost cost_of(const plan::Layer& layer, const plan::Scenario& scenario,
                        const Device& device, double input_bytes) {
  const double samples = scenario.training.microbatch_size;
  const double output = value_bytes * values_of(layer.output_shape);
  const plan::LayerEstimate estimate = plan::estimate_of(scenario.model, layer);
  const double kept = value_bytes * estimate.kept;
  const double moved =
      samples * (input_bytes + kept + output) + static_cast<double>(layer.parameter_bytes.value);

  plan::LayerCost cost;
  cost.name = layer.name;
  cost.forward = device.time(samples * layer.forward_flops, moved);
  cost.input_gradient = cost.weight_gradient = cost.forward;
  cost.optimizer_step = device.time(0, optimizer_bytes(layer));
  cost.parameters = layer.parameter_bytes;
  cost.activation = plan::whole_bytes(samples * kept);
  cost.output = plan::whole_bytes(samples * output);
  cost.forward_peak = cost.activation + cost.output;
  cost.backward_peak = cost.output + plan::whole_bytes(samples * input_bytes);
  cost.saves_input = true;
  const double attention = samples * value_bytes * estimate.attention_kept;
  cost.selective_activation = plan::whole_bytes(attention);
  cost.selective_forward = device.time(samples * estimate.attention_flops, attention);
  return cost;
}

/// Returns true if the layers are the executor's own. Those of a folder are, wherever they run. A
/// model given by sizes is assumed to use the fused kernels with which clusters were measured.
bool has_executor_layers(const plan::Scenario& scenario) {
  return scenario.model.find<plan::HuggingFaceShape>() != nullptr &&
         plan::only_predicted(*plan::transformer_of(scenario.model)).empty();
}

/// Sets the memory of the executor's layers, in the scenario's precision.
void put_executor_layers(const plan::Scenario& scenario, const plan::TransformerTraining& training,
                         plan::LayerCosts& costs) {
  constexpr int half_bytes = 2;  // bytes per number in the costs of fused kernels
  const bool is_mixed = plan::is_mixed(scenario.training.precision);
  const int bytes = is_mixed ? half_bytes : static_cast<int>(value_bytes);
  const plan::Cut cut = plan::cut_of(scenario);
  const auto layers = plan::executor_layers(training, cut, bytes);
  for (std::size_t at = 0; at < layers.size(); ++at) {
    plan::LayerCost& cost = costs.layers.at(at);
    cost.activation = layers[at].activation();
    cost.selective_activation = layers[at].selective_activation();
    cost.output = layers[at].output;
    cost.forward_peak = cost.activation + cost.output;
    cost.saves_input = true;
    cost.saves_output = false;
    cost.parameters = cost.parameters * (bytes / half_bytes);
    cost.expert_parameters = cost.expert_parameters * (bytes / half_bytes);
  }
  costs.input = layers.front().input;
  costs.target = costs.input;
  costs.loss.activation = plan::kept_by_loss(training, cut, bytes);
  costs.dtype = !is_mixed                                                   ? "float32"
                : scenario.training.precision == plan::Precision::MixedHalf ? "float16"
                                                                            : "bfloat16";
}

plan::LayerCosts costs_of_transformer(const plan::Scenario& scenario) {
  const auto training =
      plan::training_of(*plan::transformer_of(scenario.model), plan::batch_of(scenario));
  plan::LayerCosts costs =
      transformer_costs(with_known_device(scenario.cluster), training, plan::cut_of(scenario));
  if (has_executor_layers(scenario))
    put_executor_layers(scenario, training, costs);
  return costs;
}

}  // namespace

plan::LayerCosts estimated_costs(const plan::Scenario& scenario) {
  if (has_analytic_costs(scenario))
    return costs_of_transformer(scenario);
  const plan::Model model = model_of(scenario);
  const Device device = device_of(scenario);
  const plan::Sample sample = plan::sample_of(scenario.model);
  const double samples = scenario.training.microbatch_size;
  plan::LayerCosts costs;
  costs.device = scenario.cluster.device.name;
  costs.dtype = "float32";
  costs.software = software;
  costs.microbatch_size = scenario.training.microbatch_size;
  costs.input = plan::whole_bytes(samples * bytes_of(sample.input));
  costs.target = plan::whole_bytes(samples * bytes_of(sample.target));
  double input = bytes_of(sample.input);
  for (const plan::Layer& layer : model.layers) {
    costs.layers.push_back(cost_of(layer, scenario, device, input));
    input = value_bytes * values_of(layer.output_shape);
  }
  // The loss reads its input once and writes its gradient.
  costs.loss.name = "loss";
  costs.loss.forward = costs.loss.input_gradient = device.time(0, samples * input);
  costs.loss.activation = plan::whole_bytes(samples * input);
  costs.loss.saves_input = true;
  return costs;
}

bool has_analytic_costs(const plan::Scenario& scenario) {
  return plan::transformer_of(scenario.model) != nullptr;
}

bool is_estimated(const plan::LayerCosts& costs) {
  return costs.software == software || costs.software == analytic_software;
}

std::string estimate_note(const plan::Scenario& scenario) {
  const plan::Device& device = scenario.cluster.device;
  if (has_analytic_costs(scenario))
    return fmt::format("times are analytic, not measured: from the sizes of the layers and {}",
                       scenario.cluster.machine ? "the constants of the cluster's machine"
                                                : "generic constants for any GPU");
  const bool known = device.flops_per_s > 0;
  return fmt::format(
      "times are estimated, not measured: from the layers' FLOPs at {:.0f} % of {:.3g} FLOP/s, {}",
      100 * assumed_efficiency, known ? device.flops_per_s : assumed_flops_per_s,
      known ? "the device's peak" : "which is assumed because the device's peak is not known");
}

}  // namespace pipewright::models
