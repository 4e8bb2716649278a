#pragma once

// Properties of a training's layers that are known before any of them is built: which layers are
// equivalent, and how much memory each takes. Computed from shapes alone
// (exec/training/without_memory.hpp).

#include <string>
#include <vector>

#include "pipewright/plan/quantity.hpp"
#include "pipewright/profiler/layers/layer_bench.hpp"

namespace pipewright::profiler {

struct LayerOutline {
  /// The layer's kind with the types and shapes of its inputs. Layers with the same text are
  /// equivalent and measured only at a few places. Empty if no other layer is equivalent.
  std::string alike{};
  bool input_has_gradient = false;
  bool keeps_shape = false;   // its output has the type and shape of its input
  plan::Bytes training{};     // parameters, gradients and the optimizer's states
  plan::Bytes activations{};  // an estimate from the output's size
};

/// Returns the outlines by layer, the loss last. A layer whose output shapes depend on values is
/// run once alone.
std::vector<LayerOutline> outlines_of(const LayerBench& bench);

}  // namespace pipewright::profiler
