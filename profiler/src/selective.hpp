#pragma once

#include "pipewright/profiler/profile.hpp"

namespace pipewright::profiler {

/// What a layer saves and costs under selective recomputation: how much less it keeps, and how much
/// longer its backward takes. `cost`: with the layer's own activation.
void measure_selective(const Probe& probe, const Subject& subject, const at::Tensor& input,
                       bool input_needs_gradient, plan::LayerCost& cost);

}  // namespace pipewright::profiler
