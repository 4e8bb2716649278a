#pragma once

// A scenario's plan together with its prediction.

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::loop {

struct Plan : sim::ScenarioPlan {
  plan::Timeline predicted;
};

/// For those who are about to train. Throws as `sim::lay_out` does, and plan::Infeasible for too
/// little memory.
Plan make_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs);

}  // namespace pipewright::loop
