// A model of a few layers for the profiler's tests.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/training/training_setup.hpp"

namespace pipewright::test {

/// A dataset with the same input in each microbatch and dummy targets.
class Fixed final : public exec::Dataset {
 public:
  explicit Fixed(at::Tensor input) : input_(std::move(input)) {}
  at::Tensor input(int, int) const override { return input_.clone(); }
  at::Tensor target(int, int) const override { return at::zeros({1}); }

 private:
  at::Tensor input_;
};

inline exec::LayerSpec linear(const std::string& name, int in, int out) {
  return engine::module_layer(name, [in, out] { return torch::nn::Linear(in, out); });
}

/// Makes a setup whose loss is the sum of squares.
inline exec::TrainingSetup setup_of(std::vector<exec::LayerSpec> layers,
                                    const exec::Dataset& data) {
  exec::TrainingSetup setup;
  setup.layers = std::move(layers);
  setup.loss = [](const exec::Tensors& outputs, const exec::Tensors&) {
    return outputs.front().square().sum();
  };
  setup.data = &data;
  return setup;
}

}  // namespace pipewright::test
