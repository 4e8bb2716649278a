#pragma once

// Prints layer costs as text.

#include <string>

#include "pipewright/plan/costs/layer_costs.hpp"

namespace pipewright::cli {

/// Returns the time and memory of each layer.
std::string costs_table(const plan::LayerCosts& costs);

}  // namespace pipewright::cli
