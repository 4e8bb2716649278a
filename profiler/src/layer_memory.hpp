#pragma once

#include "pipewright/profiler/profile.hpp"

namespace pipewright::profiler {

/// The memory figures of one layer, from one forward and backward of it alone. Parameters must have
/// their gradients allocated.
void measure_memory(const Probe& probe, const MemoryGauge& gauge, const at::Tensor& input,
                    bool input_needs_gradient, plan::LayerCost& cost);

}  // namespace pipewright::profiler
