#pragma once

// Layers from what users have: LibTorch modules, plain functions, and layers that share a weight.

#include <torch/nn/modules/container/sequential.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pipewright/exec/training/layer.hpp"

namespace pipewright::exec {

/// A layer around a module, whose parameters, buffers and children it holds under the same names.
class WrappedLayer final : public Layer {
 public:
  using Body = std::function<Tensors(const Tensors& inputs, const CallContext& context)>;

  /// `module`: what `body` calls, or nothing where it is a mere function.
  WrappedLayer(std::shared_ptr<torch::nn::Module> module, Body body);

  Tensors forward_all(const Tensors& inputs, const CallContext& context) override {
    return body_(inputs, context);
  }
  void train(bool on = true) override;

 private:
  std::shared_ptr<torch::nn::Module> module_;
  Body body_;
};

/// The one tensor that came in. Throws InputError when it is another number of them.
const at::Tensor& only(const Tensors& inputs);

inline Tensors as_tensors(at::Tensor output) { return {std::move(output)}; }
inline Tensors as_tensors(Tensors outputs) { return outputs; }

/// Calls a function of all tensors, or of the only one; `leading` arguments stand before them.
template <class Function, class... Leading>
Tensors call_with(Function& function, const Tensors& inputs, Leading&... leading) {
  if constexpr (std::is_invocable_v<Function&, Leading&..., const Tensors&>)
    return as_tensors(function(leading..., inputs));
  else
    return as_tensors(function(leading..., only(inputs)));
}

/// A layer without parameters, from a function of a tensor or of Tensors to either.
template <class Function>
LayerSpec function_layer(std::string name, Function function) {
  return {std::move(name), [function] {
            return std::make_shared<WrappedLayer>(
                nullptr, [function](const Tensors& inputs, const CallContext&) mutable {
                  return call_with(function, inputs);
                });
          }};
}

/// What a module does where nothing else is said.
struct OwnForward {
  template <class Module>
  at::Tensor operator()(Module& module, const at::Tensor& input) const {
    return module->forward(input);
  }
};

template <class Module>
std::shared_ptr<torch::nn::Module> pointer_of(const torch::nn::ModuleHolder<Module>& holder) {
  return holder.ptr();
}
inline std::shared_ptr<torch::nn::Module> pointer_of(std::shared_ptr<torch::nn::Module> module) {
  return module;
}

/// A layer from a module that each rank builds only where it needs it: `build` returns a holder or
/// a shared pointer, such as [] { return torch::nn::Linear(4, 2); }. `forward` takes it and a
/// tensor, or Tensors, and returns either.
template <class Build, class Forward = OwnForward>
LayerSpec module_layer(std::string name, Build build, Forward forward = {}) {
  return {std::move(name), [build, forward] {
            auto module = build();
            return std::make_shared<WrappedLayer>(
                pointer_of(module),
                [module, forward](const Tensors& inputs, const CallContext&) mutable {
                  return call_with(forward, inputs, module);
                });
          }};
}

/// A copy of `module` for layer `name`; what is frozen stays so. Throws InputError for a module
/// that cannot be cloned.
std::shared_ptr<torch::nn::Module> copy_of(const std::string& name,
                                           const torch::nn::Module& module);

/// Whether one of LibTorch's dropouts is in it.
bool drops_out(const torch::nn::Module& module);

/// A layer from a module that is there already. Every rank gets a copy, with the same weights under
/// every base_seed. It is marked `random` where the module drops out.
template <class Module, class Forward = OwnForward>
LayerSpec copied_layer(const std::string& name, const std::shared_ptr<Module>& module,
                       Forward forward = {}) {
  LayerSpec spec = module_layer(
      name, [name, module] { return std::dynamic_pointer_cast<Module>(copy_of(name, *module)); },
      forward);
  spec.random = drops_out(*module);
  return spec;
}
template <class Module, class Forward = OwnForward>
LayerSpec copied_layer(const std::string& name, const torch::nn::ModuleHolder<Module>& module,
                       Forward forward = {}) {
  return copied_layer(name, module.ptr(), forward);
}

/// A layer for each module of a list, copied, under the names that they have there.
std::vector<LayerSpec> layers_of(const torch::nn::Sequential& list);

/// A layer that shares the parameter `weight` with all others of the same key, such as a head with
/// the embedding. Its forward is that of `layer`.
struct TiedLayerSpec {
  std::string key;
  std::string weight;
  LayerSpec layer;
  operator LayerSpec() const;
};

/// `layer`, which draws from LibTorch's own generator: a dropout, say.
LayerSpec random_layer(LayerSpec layer);

/// `layer`, which may give something else in another call: it draws from a generator of its own,
/// say, or counts its calls.
LayerSpec varying_layer(LayerSpec layer);

}  // namespace pipewright::exec
