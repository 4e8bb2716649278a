#pragma once

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/layer_bench.hpp"

namespace pipewright::profiler {

/// One layer by itself, with what comes to it in the model.
struct Trial {
  LayerBench& bench;
  std::size_t layer = 0;
  at::Tensor input;
  bool selective = false;  // recomputation

  bool input_needs_gradient() const { return layer > 0; }
  at::Tensor forward(const at::Tensor& value) const {
    return bench.forward(layer, value, selective);
  }
};

/// Those of the forward alone: its peak, its output, and what is still held behind it, which was
/// saved for the backward.
void measure_saved(const Trial& trial, plan::LayerCost& cost);

/// The memory figures of one layer, from a few passes of it alone, charged to the bench's account.
void measure_memory(const Trial& trial, plan::LayerCost& cost);

}  // namespace pipewright::profiler
