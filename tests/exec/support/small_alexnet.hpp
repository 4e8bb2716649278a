// AlexNet without nine tenths of its weights, which lie in two of its linear layers, on made-up
// images.
#pragma once

#include <torch/nn/modules/linear.h>

#include "exec/support/small_gpt.hpp"
#include "pipewright/exec/engine/module_layers.hpp"
#include "pipewright/exec/models/alexnet.hpp"
#include "pipewright/plan/model/alexnet_model.hpp"

namespace pipewright::test {

class MadeUpImages final : public exec::Dataset {
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

/// AlexNet's first layers, a dropout of its own and a small head: nine tenths of its weights lie
/// in the linear layers that are left out here.
inline exec::TrainingSetup small_alexnet() {
  static const MadeUpImages data;
  const auto all = exec::alexnet_layers({.image_size = 63}, /*seed=*/7);
  exec::TrainingSetup setup = small_setup();
  setup.data = &data;
  setup.layers.clear();
  for (const int layer : {0, 1, 2, 3, 4, 5, 14, 15})  // up to the second pool, flatten, dropout
    setup.layers.push_back(all[static_cast<std::size_t>(layer)]);
  setup.layers.push_back(
      exec::module_layer("head", [] { return torch::nn::Linear(192 * 3 * 3, 10); }));
  return setup;
}

/// Two stages, the second with the dropout.
inline const plan::Partition small_alexnet_partition{{0, 5, 9}};

}  // namespace pipewright::test
