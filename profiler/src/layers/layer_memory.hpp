#pragma once

// The memory of a layer, found by running it by itself and looking at what stays.

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/layers/layer_bench.hpp"

namespace pipewright::profiler {

/// One layer by itself, with what comes to it in the model.
struct Trial {
  LayerBench& bench;
  const exec::Stage& stage;  // that has it
  int layer = 0;
  exec::Tensors inputs;
  exec::Tensors targets{};
  bool selective = false;  // recomputation

  bool needs_gradient(const at::Tensor& input) const;
  /// The inputs as copies, leaves of a graph of their own.
  exec::Tensors leaves() const;
  exec::Tensors forward(const exec::Tensors& values) const {
    return stage.layers().run(layer, values, targets, {.selective_recompute = selective});
  }
  exec::Tensors parameters() const;
};

/// Whether a backward begins at one of them.
bool have_gradient(const exec::Tensors& outputs);
/// Ones for those where it does.
exec::Tensors ones_for(const exec::Tensors& outputs);

/// The figures of the forward alone: its peak, its output, and what is still held behind it, which
/// was saved for the backward.
void measure_saved(const Trial& trial, plan::LayerCost& cost);

/// The memory figures of one layer, from a few passes of it alone, charged to the bench's account.
void measure_memory(const Trial& trial, plan::LayerCost& cost);

}  // namespace pipewright::profiler
