// Layers for small models.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include <string>

#include "pipewright/engine/module_layers.hpp"

namespace pipewright::test {

inline exec::LayerSpec linear(const std::string& name, int in, int out) {
  return engine::module_layer(name, [in, out] { return torch::nn::Linear(in, out); });
}

inline exec::LayerSpec tanh(const std::string& name) {
  return engine::function_layer(name, [](const at::Tensor& input) { return input.tanh(); });
}

}  // namespace pipewright::test
