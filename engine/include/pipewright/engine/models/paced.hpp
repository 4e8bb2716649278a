#pragma once

// Layers that sleep instead of computing: many ranks keep their pace on few cores. Schedule,
// transfers and backward are real; the arithmetic is not.

#include <string>

#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::engine {

/// What a layer takes of each microbatch, however large it is.
struct PacedTimes {
  plan::Seconds forward{};
  plan::Seconds input_gradient{};  // not taken where the input requires none
  plan::Seconds weight_gradient{};
};

/// One tensor in, the same numbers plus a parameter out: one number, at first 0. A full backward
/// takes the time of both gradients, and each can be had without the other. Throws InputError when
/// a time is not between 0 and an hour.
exec::LayerSpec paced_layer(std::string name, const PacedTimes& times);

}  // namespace pipewright::engine
