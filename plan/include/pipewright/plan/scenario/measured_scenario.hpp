#pragma once

// A scenario for layers of which their costs are all that is known.

#include <string>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::plan {

/// These layers on so many devices without limits, one rank on each. `name`: its own, and its
/// cluster's.
Scenario measured_scenario(const LayerCosts& costs, const std::string& name, int ranks);

}  // namespace pipewright::plan
