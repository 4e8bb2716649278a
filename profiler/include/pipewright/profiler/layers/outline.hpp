#pragma once

// What is known of the layers of a training before any of them is built: which are alike, and how
// much memory each takes. From the shapes alone (exec/training/without_memory.hpp).

#include <string>
#include <vector>

#include "pipewright/plan/quantity.hpp"
#include "pipewright/profiler/layers/layer_bench.hpp"

namespace pipewright::profiler {

struct LayerOutline {
  /// The layer's kind with the types and shapes of its inputs: what it is measured as. Empty: it is
  /// like no other.
  std::string alike{};
  bool input_has_gradient = false;
  bool keeps_shape = false;   // its output has the type and the shape of its input
  plan::Bytes training{};     // parameters, gradients and the optimizer's states
  plan::Bytes activations{};  // a guess, from the output's size
};

/// By layer, the loss last. A layer whose outputs depend on numbers runs once by itself.
std::vector<LayerOutline> outlines_of(const LayerBench& bench);

}  // namespace pipewright::profiler
