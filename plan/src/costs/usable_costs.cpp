#include "pipewright/plan/costs/usable_costs.hpp"

#include <fmt/format.h>

#include <cmath>

#include "layer_cost_fields.hpp"
#include "pipewright/plan/costs/stage_costs.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

using Complaints = std::vector<std::string>;

void check_layer(const LayerCost& layer, Complaints& complaints) {
  visit_fields(layer, [&](const char* key, const auto& field, const FieldRule&, const char*) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, Seconds>) {
      if (!std::isfinite(field.value) || field < Seconds{})
        complaints.push_back(fmt::format("layer {}: its {} is {}, which is not a duration",
                                         layer.name, key, field.value));
    } else if constexpr (std::is_same_v<Field, Bytes>) {
      if (field < Bytes{})
        complaints.push_back(
            fmt::format("layer {}: its {} is {}, which is negative", layer.name, key, field.value));
    }
  });
}

/// Records a complaint if the times of the stage's layers add up to zero.
void check_stage(const StageCost& cost, int stage, const std::string& layers, bool training,
                 Complaints& complaints) {
  const bool no_forward = cost.forward == Seconds{};
  const bool no_backward = training && cost.input_gradient + cost.weight_gradient == Seconds{};
  if (!no_forward && !no_backward)
    return;
  const char* lacking = no_forward && no_backward ? "forward and the backward"
                        : no_forward              ? "forward"
                                                  : "backward";
  complaints.push_back(
      fmt::format("stage {} ({}): the {} would take no time at all", stage, layers, lacking));
}

std::string names_of(const LayerCosts& costs, int begin, int end) {
  const auto name = [&](int layer) { return costs.layers[static_cast<std::size_t>(layer)].name; };
  return begin + 1 == end ? name(begin) : fmt::format("{} .. {}", name(begin), name(end - 1));
}

void throw_if_any(const Complaints& complaints) {
  if (!complaints.empty())
    throw InputError(fmt::format("the costs cannot be used: {}", fmt::join(complaints, "; ")));
}

}  // namespace

void require_usable(const LayerCosts& costs, const Partition& partition, bool training) {
  Complaints complaints;
  for (const LayerCost& layer : costs.layers)
    check_layer(layer, complaints);
  check_layer(costs.loss, complaints);
  throw_if_any(complaints);

  const auto stages = stage_costs(costs, partition);
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    check_stage(stages[stage], static_cast<int>(stage),
                names_of(costs, partition.boundaries[stage], partition.boundaries[stage + 1]),
                training, complaints);
  throw_if_any(complaints);
}

}  // namespace pipewright::plan
