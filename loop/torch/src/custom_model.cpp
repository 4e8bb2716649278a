#include "pipewright/loop_torch/custom_model.hpp"

#include "pipewright/engine/pipeline_module.hpp"

namespace pipewright::loop {

plan::Model described(const std::string& name, const std::vector<exec::LayerSpec>& layers) {
  constexpr int bytes_of_float = 4;
  const auto parameters = engine::parameter_counts(layers);
  plan::Model model{.name = name, .layers = {}};
  for (std::size_t l = 0; l < layers.size(); ++l) {
    plan::Layer& layer = model.layers.emplace_back();
    layer.name = layer.kind = layers[l].name;
    layer.parameters = parameters[l];
    layer.parameter_bytes = {bytes_of_float * parameters[l]};
    layer.tied_key = layers[l].tied_key;
  }
  return model;
}

}  // namespace pipewright::loop
