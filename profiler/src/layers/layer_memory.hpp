#pragma once

// Measures the memory of a layer by running it alone and looking at what stays allocated.

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/layers/layer_bench.hpp"

namespace pipewright::profiler {

/// One layer alone, with its inputs in the model.
struct Trial {
  LayerBench& bench;
  const exec::Stage& stage;  // has the layer
  int layer = 0;
  exec::Tensors inputs;
  exec::Tensors targets{};
  bool selective = false;  // selective recomputation

  bool needs_gradient(const at::Tensor& input) const;
  /// Returns copies of the inputs, as leaves of a new graph.
  exec::Tensors leaves() const;
  exec::Tensors forward(const exec::Tensors& values) const {
    return stage.layers().run(layer, values, targets, {.selective_recompute = selective});
  }
  exec::Tensors parameters() const;
};

/// Returns true if a backward can start at one of the outputs.
bool have_gradient(const exec::Tensors& outputs);
/// Returns ones for the outputs at which it can.
exec::Tensors ones_for(const exec::Tensors& outputs);

/// Measures the forward: its peak, its output, and the bytes that it saves for the backward.
void measure_saved(const Trial& trial, plan::LayerCost& cost);

/// Measures the memory figures of one layer in a few passes of it alone, charged to the bench's
/// account.
void measure_memory(const Trial& trial, plan::LayerCost& cost);

}  // namespace pipewright::profiler
