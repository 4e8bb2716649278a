#include "pipewright/engine/module_layers.hpp"

#include <fmt/format.h>
#include <torch/nn/modules/dropout.h>

#include <algorithm>

#include "pipewright/exec/first_line.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/partitioners/name_pattern.hpp"
#include "rebuilt.hpp"

namespace pipewright::engine {
namespace {

namespace nn = torch::nn;

/// Copies requires_grad, because in a clone all parameters require gradients.
void freeze_alike(const nn::Module& original, nn::Module& copy) {
  const auto from = original.named_parameters();
  for (auto& parameter : copy.named_parameters())
    parameter.value().set_requires_grad(from[parameter.key()].requires_grad());
}

/// Clones a module, independent of how it is held.
template <class Clone>
auto cloned(const std::string& name, const Clone& clone) {
  try {
    return clone();
  } catch (const c10::Error& error) {
    throw plan::InputError(fmt::format(
        "layer {}: its module cannot be copied; derive it from torch::nn::Cloneable, or give a "
        "function that builds it ({})",
        name, exec::first_line(error.what_without_backtrace())));
  }
}

exec::LayerSpec copied_layer(const std::string& name, const nn::AnyModule& module) {
  exec::LayerSpec spec{name, [name, module] {
                         nn::AnyModule copy = cloned(name, [&] { return module.clone(); });
                         freeze_alike(*module.ptr(), *copy.ptr());
                         const auto pointer = copy.ptr();
                         return std::make_shared<WrappedLayer>(
                             pointer, [copy = std::move(copy)](const exec::Tensors& inputs,
                                                               const exec::CallContext&) mutable {
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
  exec::Layer::train(on);
  if (module_ != nullptr)
    module_->train(on);
}

std::vector<exec::CutParameter> WrappedLayer::cut_parameters() const {
  const auto* const layer = dynamic_cast<const exec::Layer*>(module_.get());
  return layer == nullptr ? std::vector<exec::CutParameter>() : layer->cut_parameters();
}

std::vector<exec::ParameterAlias> WrappedLayer::aliases() {
  auto* const layer = dynamic_cast<exec::Layer*>(module_.get());
  return layer == nullptr ? std::vector<exec::ParameterAlias>() : layer->aliases();
}

const at::Tensor& only(const exec::Tensors& inputs) {
  if (inputs.size() != 1)
    throw plan::InputError(fmt::format("this layer takes one tensor, but got {}", inputs.size()));
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

/// `prefix`: of the names. Nested lists become one layer, or one per module if `nested`.
void append_layers(const nn::SequentialImpl& list, const std::string& prefix, bool nested,
                   std::vector<exec::LayerSpec>& layers) {
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

std::vector<exec::LayerSpec> layers_of(const nn::Sequential& list) {
  std::vector<exec::LayerSpec> layers;
  append_layers(*list, "", /*nested=*/false, layers);
  return layers;
}

std::vector<exec::LayerSpec> nested_layers_of(const nn::Sequential& list) {
  std::vector<exec::LayerSpec> layers;
  append_layers(*list, "", /*nested=*/true, layers);
  return layers;
}

TiedLayerSpec::operator exec::LayerSpec() const {
  exec::LayerSpec spec = layer;
  spec.tied_key = key;
  spec.tied_weights = weight.all;
  return spec;
}

exec::LayerSpec keyword_layer(exec::LayerSpec layer, std::vector<std::string> keywords) {
  layer.keywords = std::move(keywords);
  return layer;
}

exec::LayerSpec random_layer(exec::LayerSpec layer) {
  layer.random = true;
  return layer;
}

exec::LayerSpec varying_layer(exec::LayerSpec layer) {
  layer.varies = true;
  return layer;
}

namespace {

exec::LayerSpec frozen_where(exec::LayerSpec layer,
                             const std::function<bool(const std::string&)>& is_frozen) {
  return rebuilt(std::move(layer), [is_frozen](const auto& build) -> std::shared_ptr<exec::Layer> {
    std::shared_ptr<exec::Layer> built = build();
    for (auto& parameter : built->named_parameters())
      if (is_frozen(parameter.key()))
        parameter.value().set_requires_grad(false);
    return built;
  });
}

}  // namespace

exec::LayerSpec frozen(exec::LayerSpec layer, const std::string& pattern) {
  return frozen_where(std::move(layer),
                      [expression = plan::NamePattern("frozen", pattern)](const std::string& name) {
                        return expression.is_in(name);
                      });
}

exec::LayerSpec frozen_parameters(exec::LayerSpec layer, const std::vector<std::string>& names) {
  return frozen_where(std::move(layer), [names](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

}  // namespace pipewright::engine
