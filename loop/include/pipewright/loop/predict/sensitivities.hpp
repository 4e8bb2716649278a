#pragma once

// What a faster stage, layer or link would save.

#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/sim/causes/sensitivity.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::loop {

struct Sensitivities {
  std::vector<sim::StageSensitivity> stages;
  std::vector<sim::LinkSensitivity> links;
};

/// `times` are those of the plan, from either engine.
Sensitivities sensitivities_of(const sim::ScenarioPlan& plan, const sim::Times& times);

/// What a stage saves, passed on to its layers: a second less in one of them is a second less in
/// the stage, in the proportions of the layer.
double layer_saving(const plan::LayerCost& layer, const sim::StageSensitivity& stage);

plan::Json to_json(const Sensitivities& found, const sim::ScenarioPlan& plan,
                   const plan::LayerCosts& costs);

}  // namespace pipewright::loop
