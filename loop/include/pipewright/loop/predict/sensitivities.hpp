#pragma once

// How much of the iteration a faster stage, layer or link would save.

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

/// Returns the sensitivities of the plan. `times` may come from either engine.
Sensitivities sensitivities_of(const sim::ScenarioPlan& plan, const sim::Times& times);

/// Returns what the iteration saves per second that `layer` takes less. The sensitivity of its
/// stage is weighted by the layer's own shares of forward, input-gradient and weight-gradient time.
double layer_saving(const plan::LayerCost& layer, const sim::StageSensitivity& stage);

plan::Json to_json(const Sensitivities& found, const sim::ScenarioPlan& plan,
                   const plan::LayerCosts& costs);

}  // namespace pipewright::loop
