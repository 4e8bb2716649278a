#include "pipewright/exec/engine/module_layers.hpp"

#include <fmt/format.h>
#include <torch/nn/modules/dropout.h>

#include <algorithm>

#include "first_line.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/partitioners/name_pattern.hpp"
#include "rebuilt.hpp"

namespace pipewright::exec {
namespace {

namespace nn = torch::nn;

/// A clone requires gradients throughout, whatever the module does.
void freeze_alike(const nn::Module& original, nn::Module& copy) {
  const auto from = original.named_parameters();
  for (auto& parameter : copy.named_parameters())
    parameter.value().set_requires_grad(from[parameter.key()].requires_grad());
}

/// Clones a module, whatever it is held by.
template <class Clone>
auto cloned(const std::string& name, const Clone& clone) {
  try {
    return clone();
  } catch (const c10::Error& error) {
    throw plan::InputError(fmt::format(
        "layer {}: its module cannot be copied; derive it from torch::nn::Cloneable, or give a "
        "function that builds it ({})",
        name, first_line(error.what_without_backtrace())));
  }
}

LayerSpec copied_layer(const std::string& name, const nn::AnyModule& module) {
  LayerSpec spec{name, [name, module] {
                   nn::AnyModule copy = cloned(name, [&] { return module.clone(); });
                   freeze_alike(*module.ptr(), *copy.ptr());
                   const auto pointer = copy.ptr();
                   return std::make_shared<WrappedLayer>(
                       pointer,
                       [copy = std::move(copy)](const Tensors& inputs, const CallContext&) mutable {
                         return as_tensors(copy.forward(only(inputs)));
                       });
                 }};
  spec.random = drops_out(*module.ptr());
  spec.type = module.ptr()->name();
  return spec;
}

template <class... Kinds>
bool is_one_of(const nn::Module& module) {
  return ((module.as<Kinds>() != nullptr) || ...);
}

}  // namespace

WrappedLayer::WrappedLayer(std::shared_ptr<nn::Module> module, Body body)
    : module_(std::move(module)), body_(std::move(body)) {
  if (module_ == nullptr)
    return;
  for (const auto& parameter : module_->named_parameters(/*recurse=*/false))
    register_parameter(parameter.key(), parameter.value(), parameter.value().requires_grad());
  for (const auto& buffer : module_->named_buffers(/*recurse=*/false))
    register_buffer(buffer.key(), buffer.value());
  for (const auto& child : module_->named_children())
    register_module(child.key(), child.value());
}

void WrappedLayer::train(bool on) {
  Layer::train(on);
  if (module_ != nullptr)
    module_->train(on);
}

std::vector<CutParameter> WrappedLayer::cut_parameters() const {
  const auto* const layer = dynamic_cast<const Layer*>(module_.get());
  return layer == nullptr ? std::vector<CutParameter>() : layer->cut_parameters();
}

std::vector<ParameterAlias> WrappedLayer::aliases() {
  auto* const layer = dynamic_cast<Layer*>(module_.get());
  return layer == nullptr ? std::vector<ParameterAlias>() : layer->aliases();
}

const at::Tensor& only(const Tensors& inputs) {
  if (inputs.size() != 1)
    throw plan::InputError(
        fmt::format("this layer takes one tensor, but {} came in", inputs.size()));
  return inputs.front();
}

std::shared_ptr<nn::Module> copy_of(const std::string& name, const nn::Module& module) {
  const auto copy = cloned(name, [&] { return module.clone(); });
  freeze_alike(module, *copy);
  return copy;
}

bool drops_out(const nn::Module& module) {
  const auto parts = module.modules();
  return std::any_of(parts.begin(), parts.end(), [](const auto& part) {
    return is_one_of<nn::DropoutImpl, nn::Dropout2dImpl, nn::Dropout3dImpl, nn::AlphaDropoutImpl,
                     nn::FeatureAlphaDropoutImpl>(*part);
  });
}

namespace {

/// `prefix`: of their names. Lists in the list are layers, or else their modules are.
void append_layers(const nn::SequentialImpl& list, const std::string& prefix, bool nested,
                   std::vector<LayerSpec>& layers) {
  auto module = list.begin();
  for (const auto& child : list.named_children()) {
    const std::string name = prefix + child.key();
    if (const auto* const inner = child.value()->as<nn::SequentialImpl>();
        inner != nullptr && nested)
      append_layers(*inner, name + ".", nested, layers);
    else
      layers.push_back(copied_layer(name, *module));
    ++module;
  }
}

}  // namespace

std::vector<LayerSpec> layers_of(const nn::Sequential& list) {
  std::vector<LayerSpec> layers;
  append_layers(*list, "", /*nested=*/false, layers);
  return layers;
}

std::vector<LayerSpec> nested_layers_of(const nn::Sequential& list) {
  std::vector<LayerSpec> layers;
  append_layers(*list, "", /*nested=*/true, layers);
  return layers;
}

TiedLayerSpec::operator LayerSpec() const {
  LayerSpec spec = layer;
  spec.tied_key = key;
  spec.tied_weights = weight.all;
  return spec;
}

LayerSpec keyword_layer(LayerSpec layer, std::vector<std::string> keywords) {
  layer.keywords = std::move(keywords);
  return layer;
}

LayerSpec random_layer(LayerSpec layer) {
  layer.random = true;
  return layer;
}

LayerSpec varying_layer(LayerSpec layer) {
  layer.varies = true;
  return layer;
}

namespace {

LayerSpec frozen_where(LayerSpec layer, const std::function<bool(const std::string&)>& is_frozen) {
  return rebuilt(std::move(layer), [is_frozen](const auto& build) -> std::shared_ptr<Layer> {
    std::shared_ptr<Layer> built = build();
    for (auto& parameter : built->named_parameters())
      if (is_frozen(parameter.key()))
        parameter.value().set_requires_grad(false);
    return built;
  });
}

}  // namespace

LayerSpec frozen(LayerSpec layer, const std::string& pattern) {
  return frozen_where(std::move(layer),
                      [expression = plan::NamePattern("frozen", pattern)](const std::string& name) {
                        return expression.is_in(name);
                      });
}

LayerSpec frozen_parameters(LayerSpec layer, const std::vector<std::string>& names) {
  return frozen_where(std::move(layer), [names](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

}  // namespace pipewright::exec
