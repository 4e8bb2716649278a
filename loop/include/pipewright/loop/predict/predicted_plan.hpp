#pragma once

// Makes the plan and the full prediction of a scenario in one call.

#include "pipewright/loop/predict/prediction.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::loop {

struct PredictedPlan {
  sim::ScenarioPlan plan;
  Prediction prediction;
};

/// Plans and predicts the scenario. Throws as `sim::sound_program`, `sim::lay_out` and
/// `sim::require_memory` do.
PredictedPlan predicted_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs);

}  // namespace pipewright::loop
