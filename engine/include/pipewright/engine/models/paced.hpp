#pragma once

// Layers that sleep instead of computing, so that many ranks keep realistic timing on few cores.
// Schedule, transfers and backward are real; the arithmetic is not.

#include <string>

#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::engine {

/// A layer's durations per microbatch, independent of the microbatch's size.
struct PacedTimes {
  plan::Seconds forward{};
  plan::Seconds input_gradient{};  // skipped if the input requires no gradient
  plan::Seconds weight_gradient{};
};

/// Returns a layer that adds its parameter, a single number that starts at 0, to its only input. A
/// full backward takes the time of both gradients; a split backward can compute each separately.
/// Throws InputError if a time is not between 0 and one hour.
exec::LayerSpec paced_layer(std::string name, const PacedTimes& times);

}  // namespace pipewright::engine
