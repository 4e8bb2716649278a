#pragma once

// Sensitivities of a plan: how much shorter the iteration would be if a stage, a layer or a link
// were faster.

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

/// Returns the sensitivities of the plan. `times` may come from either engine (native or SimGrid).
Sensitivities sensitivities_of(const sim::ScenarioPlan& plan, const sim::Times& times);

/// Returns how many seconds shorter the iteration is for each second that `layer` takes less per
/// microbatch: the sensitivities of its stage `stage`, weighted by the shares of forward, input
/// gradient and weight gradient in the layer's time.
double layer_saving(const plan::LayerCost& layer, const sim::StageSensitivity& stage);

plan::Json to_json(const Sensitivities& found, const sim::ScenarioPlan& plan,
                   const plan::LayerCosts& costs);

}  // namespace pipewright::loop
