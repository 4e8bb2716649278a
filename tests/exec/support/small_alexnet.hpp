// AlexNet without nine tenths of its weights, which are in two of its linear layers, on synthetic
// images.
#pragma once

#include <torch/nn/modules/linear.h>

#include "exec/support/small_gpt.hpp"
#include "pipewright/engine/models/alexnet.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/plan/model/alexnet_model.hpp"

namespace pipewright::test {

class SyntheticImages final : public exec::Dataset {
 public:
  at::Tensor input(int step, int microbatch) const override {
    return (at::arange(2 * 3 * 63 * 63, at::kFloat) * (0.1 + 0.01 * step) + microbatch)
        .sin()
        .view({2, 3, 63, 63});
  }
  at::Tensor target(int step, int microbatch) const override {
    return (at::arange(2, at::kLong) + step + microbatch) % 10;
  }
};

/// Returns AlexNet's first layers, its average pooling, a dropout and a small head. The linear
/// layers that are omitted have nine tenths of its weights.
inline exec::TrainingSetup small_alexnet() {
  static const SyntheticImages data;
  const auto all = engine::alexnet_layers({.image_size = 63}, /*seed=*/7);
  exec::TrainingSetup setup = small_setup();
  setup.data = &data;
  setup.layers.clear();
  for (const int layer :
       {0, 1, 2, 3, 4, 5, 13, 14, 15})  // up to the second pooling, and from the average pooling on
    setup.layers.push_back(all[static_cast<std::size_t>(layer)]);
  setup.layers.push_back(
      engine::module_layer("head", [] { return torch::nn::Linear(192 * 6 * 6, 10); }));
  return setup;
}

/// Two stages; the second one has the dropout.
inline const plan::Partition small_alexnet_partition{{0, 5, 10}};

}  // namespace pipewright::test
