#pragma once

// Costs of layers, for people.

#include <string>

#include "pipewright/plan/costs/layer_costs.hpp"

namespace pipewright::cli {

/// What each layer costs, in time and memory.
std::string costs_table(const plan::LayerCosts& costs);

}  // namespace pipewright::cli
