#pragma once

// The memory of a layer, found by running it by itself and looking at what stays.

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/layer_bench.hpp"

namespace pipewright::profiler {

/// One layer by itself, with what comes to it in the model.
struct Trial {
  LayerBench& bench;
  const exec::Stage& stage;  // that has it
  int layer = 0;
  at::Tensor input;
  exec::Tensors targets{};
  bool selective = false;  // recomputation

  bool input_needs_gradient() const { return layer > 0; }
  at::Tensor forward(const at::Tensor& value) const {
    return stage.run_layer(layer, {value}, targets, {.selective_recompute = selective}).at(0);
  }
  exec::Tensors parameters() const;
};

/// The figures of the forward alone: its peak, its output, and what is still held behind it, which
/// was saved for the backward.
void measure_saved(const Trial& trial, plan::LayerCost& cost);

/// The memory figures of one layer, from a few passes of it alone, charged to the bench's account.
void measure_memory(const Trial& trial, plan::LayerCost& cost);

}  // namespace pipewright::profiler
