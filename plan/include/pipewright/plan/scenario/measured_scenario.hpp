#pragma once

// A scenario for layers of which only the costs are known.

#include <string>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::plan {

/// Returns a scenario with these layers on `ranks` devices with unlimited memory, one rank per
/// device. `name` is used for both the scenario and its cluster.
Scenario measured_scenario(const LayerCosts& costs, const std::string& name, int ranks);

}  // namespace pipewright::plan
