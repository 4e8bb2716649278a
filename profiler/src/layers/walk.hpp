#pragma once

// Computes the inputs of a model's sections by running it layer by layer.

#include <vector>

#include "pipewright/profiler/layers/outline.hpp"

namespace pipewright::profiler {

/// A microbatch as it is loaded, before any layer.
struct LoadedMicrobatch {
  exec::Tensors inputs;
  exec::Tensors targets;
};
LoadedMicrobatch load_microbatch(const LayerBench& bench, int step);

/// The typical time that a rank needs to load inputs and targets.
struct LoadTimes {
  plan::Seconds inputs{};
  plan::Seconds targets{};
};
LoadTimes load_times(const LayerBench& bench);

class Walk {
 public:
  /// Begins with the model's inputs: of one step, or of several if there are experts. Keeps
  /// references to both arguments.
  Walk(const LayerBench& bench, const std::vector<LayerOutline>& outlines);

  /// Advances to the layer: builds, runs and drops those on the way. Skips a layer that is like an
  /// earlier one and keeps its input's shape.
  void go_to(int layer);
  /// Records that the layers before this one have turned the current values into these.
  void went_to(int layer, std::vector<exec::Tensors> values);

  /// Returns the layer's inputs in the first step, with requires_grad if they have a gradient in
  /// training.
  exec::Tensors inputs() const;
  /// Returns the layer's inputs by step.
  const std::vector<exec::Tensors>& values() const { return values_; }
  const exec::Tensors& targets() const { return targets_; }

 private:
  void run(int layer);

  const LayerBench& bench_;
  const std::vector<LayerOutline>& outlines_;
  int at_ = 0;
  std::vector<exec::Tensors> values_;
  exec::Tensors targets_;
};

}  // namespace pipewright::profiler
