#pragma once

#include "pipewright/profiler/profile.hpp"

namespace pipewright::profiler {

/// The memory figures of one layer, from a few passes of it alone. Parameters must have
/// their gradients allocated.
void measure_memory(const Probe& probe, const Subject& subject, const at::Tensor& input,
                    bool input_needs_gradient, plan::LayerCost& cost);

}  // namespace pipewright::profiler
