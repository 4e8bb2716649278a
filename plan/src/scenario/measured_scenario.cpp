#include "pipewright/plan/scenario/measured_scenario.hpp"

#include "pipewright/plan/model/measured_model.hpp"

namespace pipewright::plan {

Scenario measured_scenario(const LayerCosts& costs, const std::string& name, int ranks) {
  MeasuredShape model{.layers = {}};
  for (const LayerCost& layer : costs.layers)
    model.layers.push_back({.name = layer.name, .parameters = layer.parameters});
  Scenario scenario;
  scenario.name = name;
  scenario.model = std::move(model);
  scenario.data = {.kind = "samples", .path = "unknown"};
  scenario.cluster.name = name;
  scenario.cluster.devices_per_node = ranks;
  scenario.cluster.device.name = costs.device;
  scenario.pipeline.ranks = ranks;
  scenario.pipeline.partition = "profile";
  scenario.training.microbatch_size = costs.microbatch_size;
  scenario.training.optimizer = Optimizer::Sgd;
  return scenario;
}

}  // namespace pipewright::plan
