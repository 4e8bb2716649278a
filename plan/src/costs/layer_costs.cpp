#include "pipewright/plan/costs/layer_costs.hpp"

#include <fmt/format.h>

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::plan {
namespace {

Json to_json(const LayerCost& cost) {
  return {{"name", cost.name},
          {"forward_s", cost.forward.value},
          {"input_gradient_s", cost.input_gradient.value},
          {"weight_gradient_s", cost.weight_gradient.value},
          {"optimizer_step_s", cost.optimizer_step.value},
          {"parameter_bytes", cost.parameters.value},
          {"activation_bytes", cost.activation.value},
          {"output_bytes", cost.output.value},
          {"forward_peak_bytes", cost.forward_peak.value},
          {"backward_peak_bytes", cost.backward_peak.value},
          {"saves_input", cost.saves_input},
          {"saves_output", cost.saves_output},
          {"output_is_view", cost.output_is_view},
          {"spread", cost.spread},
          {"tied_bytes", cost.tied.value},
          {"freed_by_input_gradient_bytes", cost.freed_by_input_gradient.value},
          {"gradients_for_weights_bytes", cost.gradients_for_weights.value},
          {"input_gradient_peak_bytes", cost.input_gradient_peak.value},
          {"weight_gradient_peak_bytes", cost.weight_gradient_peak.value},
          {"forward_peak_without_graph_bytes", cost.forward_peak_without_graph.value},
          {"input_for_weights", cost.input_for_weights},
          {"output_gradient_for_weights", cost.output_gradient_for_weights},
          {"selective_activation_bytes", cost.selective_activation.value},
          {"selective_forward_s", cost.selective_forward.value},
          {"splitting_s", cost.splitting.value},
          {"contended_forward_s", cost.contended.forward.value},
          {"contended_input_gradient_s", cost.contended.input_gradient.value},
          {"contended_weight_gradient_s", cost.contended.weight_gradient.value},
          {"contended_splitting_s", cost.contended.splitting.value},
          {"contended_optimizer_step_s", cost.contended.optimizer_step.value}};
}

/// A field that counts a part of another one.
void check_part(JsonObject& object, const std::string& part, Bytes bytes, const std::string& whole,
                Bytes of) {
  if (bytes > of && object.has(whole))
    object.error(part, fmt::format("{} is more than {}, {}, of which it is a part", bytes.value,
                                   whole, of.value));
}

LayerCost read_layer_cost(Diagnostics& diagnostics, const std::string& pointer) {
  JsonObject object(diagnostics, pointer);
  LayerCost cost{
      .name = object.text("name"),
      .forward = object.seconds("forward_s"),
      .input_gradient = object.seconds("input_gradient_s"),
      .weight_gradient = object.seconds("weight_gradient_s"),
      .optimizer_step = object.seconds("optimizer_step_s"),
      .parameters = object.bytes("parameter_bytes"),
      .activation = object.bytes("activation_bytes"),
      .output = object.bytes("output_bytes"),
      .forward_peak = object.bytes("forward_peak_bytes"),
      .backward_peak = object.bytes("backward_peak_bytes"),
      .saves_input = object.flag("saves_input"),
      .saves_output = object.flag("saves_output"),
      .output_is_view = object.flag("output_is_view"),
      .spread = object.number("spread", at_least(0), 0),
      .tied = object.bytes("tied_bytes", Bytes{}),
      .freed_by_input_gradient = object.bytes("freed_by_input_gradient_bytes", Bytes{}),
      .gradients_for_weights = object.bytes("gradients_for_weights_bytes", Bytes{}),
      .input_gradient_peak = object.bytes("input_gradient_peak_bytes", Bytes{}),
      .weight_gradient_peak = object.bytes("weight_gradient_peak_bytes", Bytes{}),
      .forward_peak_without_graph = object.bytes("forward_peak_without_graph_bytes", Bytes{}),
      .input_for_weights = object.flag("input_for_weights", false),
      .output_gradient_for_weights = object.flag("output_gradient_for_weights", false),
      .selective_activation = object.bytes("selective_activation_bytes", Bytes{}),
      .selective_forward = object.seconds("selective_forward_s", Seconds{}),
      .splitting = object.seconds("splitting_s", Seconds{}),
      .contended = {.forward = object.seconds("contended_forward_s", Seconds{}),
                    .input_gradient = object.seconds("contended_input_gradient_s", Seconds{}),
                    .weight_gradient = object.seconds("contended_weight_gradient_s", Seconds{}),
                    .splitting = object.seconds("contended_splitting_s", Seconds{}),
                    .optimizer_step = object.seconds("contended_optimizer_step_s", Seconds{})}};
  const auto bound = cost.input_gradient + cost.weight_gradient;
  if (cost.splitting > bound)
    object.error("splitting_s",
                 fmt::format("{} is more than input_gradient_s and weight_gradient_s "
                             "together, {}, of which it is a part",
                             cost.splitting.value, bound.value));
  check_part(object, "tied_bytes", cost.tied, "parameter_bytes", cost.parameters);
  check_part(object, "freed_by_input_gradient_bytes", cost.freed_by_input_gradient,
             "activation_bytes", cost.activation);
  check_part(object, "selective_activation_bytes", cost.selective_activation, "activation_bytes",
             cost.activation);
  return cost;
}

LayerCosts read_layer_costs(JsonObject& root) {
  LayerCosts costs;
  costs.device = root.text("device");
  costs.dtype = root.text("dtype");
  costs.software = root.text("software");
  costs.microbatch_size = root.integer("microbatch_size", at_least(1));
  costs.load = root.seconds("load_s");
  costs.load_target = root.seconds("load_target_s", Seconds{});
  costs.input = root.bytes("input_bytes");
  costs.target = root.bytes("target_bytes");
  for (const std::string& pointer : root.elements("layers"))
    costs.layers.push_back(read_layer_cost(root.diagnostics(), pointer));
  if (const Json* layers = root.find("layers"); layers != nullptr && *layers == Json::array())
    root.error("layers", "at least one layer is needed");
  costs.loss = read_layer_cost(root.diagnostics(), root.child("loss"));
  costs.busy_cores = root.integer("busy_cores", at_least(1), 1);
  costs.drift = root.number("drift", at_least(0), 0);
  costs.measured_over = root.seconds("measured_over_s", Seconds{});
  root.find("work");  // what the times are made of: told, but planned with by nobody
  return costs;
}

}  // namespace

namespace {

LayerCost contended(LayerCost cost) {
  cost.forward = cost.contended.forward;
  cost.input_gradient = cost.contended.input_gradient;
  cost.weight_gradient = cost.contended.weight_gradient;
  cost.splitting = cost.contended.splitting;
  cost.optimizer_step = cost.contended.optimizer_step;
  return cost;
}

}  // namespace

LayerCosts contended(LayerCosts costs) {
  if (costs.busy_cores == 1)
    return costs;
  for (LayerCost& layer : costs.layers)
    layer = contended(layer);
  costs.loss = contended(costs.loss);
  return costs;
}

namespace {

LayerCost scaled(LayerCost cost, double factor) {
  for (Seconds* time :
       {&cost.forward, &cost.input_gradient, &cost.weight_gradient, &cost.splitting,
        &cost.selective_forward, &cost.contended.forward, &cost.contended.input_gradient,
        &cost.contended.weight_gradient, &cost.contended.splitting})
    *time = *time * factor;
  for (Bytes* bytes :
       {&cost.activation, &cost.output, &cost.forward_peak, &cost.backward_peak,
        &cost.freed_by_input_gradient, &cost.gradients_for_weights, &cost.input_gradient_peak,
        &cost.weight_gradient_peak, &cost.selective_activation})
    *bytes = whole_bytes(static_cast<double>(bytes->value) * factor);
  return cost;
}

}  // namespace

LayerCosts scaled_to(LayerCosts costs, int microbatch_size) {
  const double factor = static_cast<double>(microbatch_size) / costs.microbatch_size;
  if (factor == 1)
    return costs;
  costs.microbatch_size = microbatch_size;
  costs.load = costs.load * factor;
  costs.load_target = costs.load_target * factor;
  costs.input = whole_bytes(static_cast<double>(costs.input.value) * factor);
  costs.target = whole_bytes(static_cast<double>(costs.target.value) * factor);
  for (LayerCost& layer : costs.layers)
    layer = scaled(layer, factor);
  costs.loss = scaled(costs.loss, factor);
  return costs;
}

std::optional<int> bytes_per_parameter(const LayerCosts& costs) {
  if (costs.dtype == "float64")
    return 8;
  if (costs.dtype == "float32")
    return 4;
  if (costs.dtype == "float16" || costs.dtype == "bfloat16")
    return 2;
  return {};
}

Seconds compute_time(const LayerCost& cost) {
  return cost.forward + cost.input_gradient + cost.weight_gradient - cost.splitting;
}

Json to_json(const LayerCosts& costs) {
  Json layers = Json::array();
  for (const LayerCost& layer : costs.layers)
    layers.push_back(to_json(layer));
  return {{"format", "pipewright/costs/1"},
          {"device", costs.device},
          {"dtype", costs.dtype},
          {"software", costs.software},
          {"microbatch_size", costs.microbatch_size},
          {"load_s", costs.load.value},
          {"load_target_s", costs.load_target.value},
          {"input_bytes", costs.input.value},
          {"target_bytes", costs.target.value},
          {"layers", std::move(layers)},
          {"loss", to_json(costs.loss)},
          {"busy_cores", costs.busy_cores},
          {"drift", costs.drift},
          {"measured_over_s", costs.measured_over.value}};
}

LayerCosts layer_costs_from_json(const JsonDocument& document) {
  return read_document<LayerCosts>(document, "pipewright/costs/1", read_layer_costs);
}

}  // namespace pipewright::plan
