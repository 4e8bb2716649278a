#include "pipewright/loop/predict/sensitivities.hpp"

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::loop {

Sensitivities sensitivities_of(const sim::ScenarioPlan& plan, const sim::Times& times) {
  return {sim::stage_sensitivities(*plan.structure, times, plan.costs),
          sim::link_sensitivities(*plan.structure, times)};
}

double layer_saving(const plan::LayerCost& layer, const sim::StageSensitivity& stage) {
  const double all = plan::compute_time(layer).value;
  if (!(all > 0))
    return 0;
  return (layer.forward.value * stage.forward + layer.input_gradient.value * stage.input_gradient +
          layer.weight_gradient.value * stage.weight_gradient) /
         all;
}

plan::Json to_json(const Sensitivities& found, const sim::ScenarioPlan& plan,
                   const plan::LayerCosts& costs) {
  plan::Json json{{"stages", plan::Json::array()},
                  {"layers", plan::Json::array()},
                  {"links", plan::Json::array()}};
  for (std::size_t s = 0; s < found.stages.size(); ++s) {
    const sim::StageSensitivity& stage = found.stages[s];
    json["stages"].push_back({{"all", stage.all},
                              {"forward", stage.forward},
                              {"input_gradient", stage.input_gradient},
                              {"weight_gradient", stage.weight_gradient}});
    for (int l = plan.partition.boundaries[s]; l < plan.partition.boundaries[s + 1]; ++l)
      json["layers"].push_back(
          {{"name", costs.layers[static_cast<std::size_t>(l)].name},
           {"saved", layer_saving(costs.layers[static_cast<std::size_t>(l)], stage)}});
  }
  for (const sim::LinkSensitivity& link : found.links)
    json["links"].push_back({{"from", link.from},
                             {"to", link.to},
                             {"latency", link.latency},
                             {"occupancy", link.occupancy}});
  return json;
}

}  // namespace pipewright::loop
