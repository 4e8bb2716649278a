#include "pipewright/plan/costs/layer_costs.hpp"

#include <fmt/format.h>

#include "layer_cost_fields.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::plan {
namespace {

/// Checks that a field that is part of another one is not larger than it.
void check_part(JsonObject& object, const std::string& part, Bytes bytes, const std::string& whole,
                Bytes of) {
  if (bytes > of && object.has(whole))
    object.error(part, fmt::format("{} is more than {}, {}, of which it is a part", bytes.value,
                                   whole, of.value));
}

void check_loads(JsonObject& object, const std::vector<ExpertLoad>& loads) {
  for (std::size_t at = 0; at < loads.size(); ++at) {
    const ExpertLoad& load = loads[at];
    if (load.busiest > load.ranks)
      object.error(
          "expert_loads",
          fmt::format("of {} ranks one has {} times the mean, which is more than the total",
                      load.ranks, load.busiest));
    if (at > 0 && load.ranks <= loads[at - 1].ranks)
      object.error("expert_loads",
                   fmt::format("{} ranks come after {}: their numbers must increase", load.ranks,
                               loads[at - 1].ranks));
  }
}

LayerCost read_layer_cost(Diagnostics& diagnostics, const std::string& pointer) {
  JsonObject object(diagnostics, pointer);
  const auto cost = read_fields<LayerCost>(object);
  const auto bound = cost.input_gradient + cost.weight_gradient;
  if (cost.splitting > bound)
    object.error("splitting_s",
                 fmt::format("{} is more than input_gradient_s and weight_gradient_s "
                             "together, {}, of which it is a part",
                             cost.splitting.value, bound.value));
  check_part(object, "tied_bytes", cost.tied, "parameter_bytes", cost.parameters);
  check_part(object, "expert_parameter_bytes", cost.expert_parameters, "parameter_bytes",
             cost.parameters);
  check_loads(object, cost.expert_loads);
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
  costs.tensor = root.integer("tensor", size_range, 1);
  costs.context = root.integer("context", size_range, 1);
  costs.expert = root.integer("expert", size_range, 1);
  costs.load = root.seconds("load_s");
  costs.load_target = root.seconds("load_target_s", Seconds{});
  costs.reads_on_rank = root.flag("reads_on_rank", false);
  costs.shards_by_layer = root.flag("shards_by_layer", false);
  costs.input = root.bytes("input_bytes");
  costs.target = root.bytes("target_bytes");
  costs.workspaces = root.bytes("workspace_bytes", Bytes{});
  costs.iteration = root.seconds("iteration_s", Seconds{});
  for (const std::string& pointer : root.elements("layers"))
    costs.layers.push_back(read_layer_cost(root.diagnostics(), pointer));
  if (const Json* layers = root.find("layers"); layers != nullptr && *layers == Json::array())
    root.error("layers", "at least one layer is needed");
  costs.loss = read_layer_cost(root.diagnostics(), root.child("loss"));
  costs.busy_cores = root.integer("busy_cores", at_least(1), 1);
  costs.drift = root.number("drift", at_least(0), 0);
  costs.measured_over = root.seconds("measured_over_s", Seconds{});
  if (root.has("runtime")) {
    JsonObject runtime(root.diagnostics(), root.child("runtime"));
    costs.runtime = read_fields<RuntimeCost>(runtime);
  }
  root.find("work");  // accepted but not used for planning: the breakdown of the times
  root.find(
      "identical_layers");  // accepted but not used for planning: the groups of identical layers
  return costs;
}

}  // namespace

LayerCosts contended(LayerCosts costs) {
  if (costs.busy_cores == 1)
    return costs;
  for (LayerCost& layer : costs.layers)
    static_cast<LayerTimes&>(layer) = layer.contended;
  static_cast<LayerTimes&>(costs.loss) = costs.loss.contended;
  return costs;
}

namespace {

/// Scales all costs but those that occur once per step, independently of the number of
/// microbatches.
LayerCost scaled(const LayerCost& cost, double factor) {
  LayerCost scaled = cost;
  visit_fields(scaled, [&](const char*, auto& field, const FieldRule&, const char*) {
    using Field = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, Seconds>)
      field = field * factor;
    else if constexpr (std::is_same_v<Field, Bytes>)
      field = whole_bytes(static_cast<double>(field.value) * factor);
    else if constexpr (std::is_same_v<Field, PartitionCollectives>)
      field.bytes = whole_bytes(static_cast<double>(field.bytes.value) * factor);
  });
  scaled.parameters = cost.parameters;
  scaled.tied = cost.tied;
  scaled.expert_parameters = cost.expert_parameters;
  scaled.optimizer_step = cost.optimizer_step;
  scaled.contended.optimizer_step = cost.contended.optimizer_step;
  return scaled;
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

Seconds time_of(Work work, const LayerCost& cost) {
  switch (work) {
    case Work::Forward:
    case Work::Rerun:
      return cost.forward;
    case Work::Backward:
      return cost.input_gradient + cost.weight_gradient - cost.splitting;
    case Work::InputGradient:
      return cost.input_gradient;
    case Work::WeightGradient:
      return cost.weight_gradient;
    case Work::OptimizerStep:
      return cost.optimizer_step;
    case Work::None:
    case Work::Load:
      return {};
  }
  return {};
}

Seconds compute_time(const LayerCost& cost) { return cost.forward + time_of(Work::Backward, cost); }

Json to_json(const LayerCosts& costs) {
  Json layers = Json::array();
  for (const LayerCost& layer : costs.layers)
    layers.push_back(fields_json(layer));
  Json json{{"format", "pipewright/costs/1"},
            {"device", costs.device},
            {"dtype", costs.dtype},
            {"software", costs.software},
            {"microbatch_size", costs.microbatch_size},
            {"tensor", costs.tensor},
            {"context", costs.context},
            {"expert", costs.expert},
            {"load_s", costs.load.value},
            {"load_target_s", costs.load_target.value},
            {"reads_on_rank", costs.reads_on_rank},
            {"shards_by_layer", costs.shards_by_layer},
            {"input_bytes", costs.input.value},
            {"target_bytes", costs.target.value},
            {"workspace_bytes", costs.workspaces.value},
            {"iteration_s", costs.iteration.value},
            {"layers", std::move(layers)},
            {"loss", fields_json(costs.loss)},
            {"busy_cores", costs.busy_cores},
            {"drift", costs.drift},
            {"measured_over_s", costs.measured_over.value}};
  if (costs.runtime)
    json["runtime"] = fields_json(*costs.runtime);
  return json;
}

RuntimeCost runtime_cost_from_json(const JsonDocument& document) {
  return read_document<RuntimeCost>(document, "pipewright/runtime/1", [](JsonObject& root) {
    return read_fields<RuntimeCost>(root);
  });
}

LayerCosts layer_costs_from_json(const JsonDocument& document) {
  return read_document<LayerCosts>(document, "pipewright/costs/1", read_layer_costs);
}

}  // namespace pipewright::plan
