#pragma once

// Selective recomputation: what a layer saves by it, and what that costs.

#include "layer_memory.hpp"

namespace pipewright::profiler {

/// What a layer saves and costs under selective recomputation: how much less it keeps, and how much
/// longer its backward takes. `cost`: with the layer's own activation.
void measure_selective(const Trial& trial, plan::LayerCost& cost);

}  // namespace pipewright::profiler
