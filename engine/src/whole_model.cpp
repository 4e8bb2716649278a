#include "pipewright/engine/whole_model.hpp"

#include "pipewright/engine/module_layers.hpp"

namespace pipewright::engine {

WholeModel::WholeModel(const PipelineModule& module, at::Device device)
    : specs_(module.layers()), base_seed_(module.options().base_seed) {
  for (int layer = 0; layer < static_cast<int>(specs_.size()); ++layer) {
    layers_.push_back(exec::build_layer(specs_, layer, base_seed_));
    if (!device.is_cpu())
      layers_.back()->to(device);
  }
}

exec::Tensors WholeModel::forward(const exec::Tensors& inputs, const exec::CallContext& context) {
  exec::Tensors values = inputs;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    if (layers_[layer]->is_training() != context.training)
      layers_[layer]->train(context.training);
    values = exec::run_layer(specs_[layer], *layers_[layer], static_cast<int>(layer), base_seed_,
                             values, context);
  }
  return values;
}

at::Tensor WholeModel::forward(const at::Tensor& input) {
  return only(forward(exec::Tensors{input}));
}

std::vector<at::Tensor> WholeModel::parameters() const { return parameters_of(layers_); }

}  // namespace pipewright::engine
