// Runs layers one after the other, as one stage would.
#pragma once

#include <ATen/ATen.h>

#include "pipewright/exec/training/layer.hpp"

namespace pipewright::test {

inline std::vector<std::shared_ptr<exec::Layer>> build_all(
    const std::vector<exec::LayerSpec>& specs, int base_seed = 1) {
  std::vector<std::shared_ptr<exec::Layer>> layers;
  for (int index = 0; index < static_cast<int>(specs.size()); ++index)
    layers.push_back(exec::build_layer(specs, index, base_seed));
  return layers;
}

inline exec::Tensors run_layers(const std::vector<exec::LayerSpec>& specs, exec::Tensors inputs,
                                const exec::CallContext& context = {}) {
  for (const auto& layer : build_all(specs))
    inputs = layer->forward_all(inputs, context);
  return inputs;
}

}  // namespace pipewright::test
