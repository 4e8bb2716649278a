#pragma once

// Measures selective recomputation: the memory that a layer saves and the time that it costs.

#include "layer_memory.hpp"

namespace pipewright::profiler {

/// Sets how many fewer bytes a layer keeps under selective recomputation, and how much longer its
/// backward takes. `cost` must already have the layer's own activation.
void measure_selective(const Trial& trial, plan::LayerCost& cost);

}  // namespace pipewright::profiler
