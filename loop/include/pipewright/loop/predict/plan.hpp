#pragma once

// The plan of a scenario together with its predicted timeline.

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::loop {

struct Plan : sim::ScenarioPlan {
  plan::Timeline predicted;
};

/// Makes the plan that a training follows. Throws as `sim::lay_out` does, and plan::Infeasible if
/// memory does not suffice.
Plan make_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs);

}  // namespace pipewright::loop
