#pragma once

// The microbatches that come to the sections of a model, which is walked through layer by layer.

#include <vector>

#include "pipewright/profiler/layers/outline.hpp"

namespace pipewright::profiler {

/// What is loaded of a microbatch, without any layer.
struct LoadedMicrobatch {
  exec::Tensors inputs;
  exec::Tensors targets;
};
LoadedMicrobatch load_microbatch(const LayerBench& bench, int step);

/// How long the two take a rank, typically.
struct LoadTimes {
  plan::Seconds inputs{};
  plan::Seconds targets{};
};
LoadTimes load_times(const LayerBench& bench);

class Walk {
 public:
  /// Begins with the model's inputs: of one step, or where there are experts of several. Both must
  /// outlive it.
  Walk(const LayerBench& bench, const std::vector<LayerOutline>& outlines);

  /// Goes on to the layer: those on the way are built, run forward and dropped. One that is like
  /// another before it, and keeps its input's shape, is passed by.
  void go_to(int layer);
  /// The layers up to this one have made these of `values`.
  void went_to(int layer, std::vector<exec::Tensors> values);

  /// What comes into the layer, of the first step; with gradients where it has some in training.
  exec::Tensors inputs() const;
  /// The same, by step.
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
