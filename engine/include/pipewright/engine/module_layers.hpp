#pragma once

// Layers made from LibTorch modules and plain functions, and layers that share a weight.

#include <c10/util/Type.h>
#include <torch/nn/modules/container/sequential.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pipewright/exec/training/layer.hpp"

namespace pipewright::engine {

/// A layer around a module, which holds the module's parameters, buffers and children under the
/// same names.
class WrappedLayer final : public exec::Layer {
 public:
  using Body =
      std::function<exec::Tensors(const exec::Tensors& inputs, const exec::CallContext& context)>;

  /// `module`: the module that `body` calls, or null if `body` is a plain function.
  WrappedLayer(std::shared_ptr<torch::nn::Module> module, Body body);

  exec::Tensors forward_all(const exec::Tensors& inputs,
                            const exec::CallContext& context) override {
    return body_(inputs, context);
  }
  void train(bool on = true) override;
  /// Returns the split parameters of a module that is itself a layer.
  std::vector<exec::CutParameter> cut_parameters() const override;
  std::vector<exec::ParameterAlias> aliases() override;

 private:
  std::shared_ptr<torch::nn::Module> module_;
  Body body_;
};

/// Returns the only tensor of `inputs`. Throws InputError if there is not exactly one.
const at::Tensor& only(const exec::Tensors& inputs);

inline exec::Tensors as_tensors(at::Tensor output) { return {std::move(output)}; }
inline exec::Tensors as_tensors(exec::Tensors outputs) { return outputs; }

/// Calls a function of all tensors or of the only one. `leading` arguments precede the tensors, and
/// the call's context follows them if the function takes it.
template <class Function, class... Leading>
exec::Tensors call_with(Function& function, const exec::Tensors& inputs,
                        const exec::CallContext& context, Leading&... leading) {
  if constexpr (std::is_invocable_v<Function&, Leading&..., const exec::Tensors&,
                                    const exec::CallContext&>)
    return as_tensors(function(leading..., inputs, context));
  else if constexpr (std::is_invocable_v<Function&, Leading&..., const at::Tensor&,
                                         const exec::CallContext&>)
    return as_tensors(function(leading..., only(inputs), context));
  else if constexpr (std::is_invocable_v<Function&, Leading&..., const exec::Tensors&>)
    return as_tensors(function(leading..., inputs));
  else
    return as_tensors(function(leading..., only(inputs)));
}

/// Returns a layer without parameters, from a function that takes and returns a tensor or Tensors.
template <class Function>
exec::LayerSpec function_layer(std::string name, Function function) {
  return {std::move(name), [function] {
            return std::make_shared<WrappedLayer>(
                nullptr,
                [function](const exec::Tensors& inputs, const exec::CallContext& context) mutable {
                  return call_with(function, inputs, context);
                });
          }};
}

/// The default forward, which calls the module's own.
struct ModuleForward {
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

/// Returns a layer from a module that each rank builds only if it needs it. `build` returns a
/// holder or a shared pointer, such as [] { return torch::nn::Linear(4, 2); }. `forward` takes it,
/// a tensor or Tensors, and optionally the CallContext, and returns a tensor or Tensors.
template <class Build, class Forward = ModuleForward>
exec::LayerSpec module_layer(std::string name, Build build, Forward forward = {}) {
  exec::LayerSpec spec{std::move(name), [build, forward] {
                         auto module = build();
                         return std::make_shared<WrappedLayer>(
                             pointer_of(module),
                             [module, forward](const exec::Tensors& inputs,
                                               const exec::CallContext& context) mutable {
                               return call_with(forward, inputs, context, module);
                             });
                       }};
  using Module = std::remove_cvref_t<decltype(*std::declval<std::invoke_result_t<Build&>&>())>;
  spec.type = c10::demangle_type<Module>();
  return spec;
}

/// Returns a copy of `module` for layer `name`; frozen parameters stay frozen. Throws InputError
/// for a module that cannot be cloned.
std::shared_ptr<torch::nn::Module> copy_of(const std::string& name,
                                           const torch::nn::Module& module);

/// Returns true if the module contains one of LibTorch's dropouts.
bool drops_out(const torch::nn::Module& module);

/// Returns a layer from an existing module. Every rank gets a copy with the same weights,
/// regardless of base_seed. The layer is marked `random` if the module contains a dropout.
template <class Module, class Forward = ModuleForward>
exec::LayerSpec copied_layer(const std::string& name, const std::shared_ptr<Module>& module,
                             Forward forward = {}) {
  exec::LayerSpec spec = module_layer(
      name, [name, module] { return std::dynamic_pointer_cast<Module>(copy_of(name, *module)); },
      forward);
  spec.random = drops_out(*module);
  spec.type = module->name();
  return spec;
}
template <class Module, class Forward = ModuleForward>
exec::LayerSpec copied_layer(const std::string& name, const torch::nn::ModuleHolder<Module>& module,
                             Forward forward = {}) {
  return copied_layer(name, module.ptr(), forward);
}

/// Returns one layer per module of a list, copied, under the names that the modules have there.
std::vector<exec::LayerSpec> layers_of(const torch::nn::Sequential& list);
/// Returns one layer per module, with nested lists flattened to any depth: the second module of a
/// list "encoder" becomes the layer "encoder.1". A class derived from SequentialImpl counts as a
/// list, so its forward must run its modules in sequence.
std::vector<exec::LayerSpec> nested_layers_of(const torch::nn::Sequential& list);

/// The names of one or several parameters.
struct WeightNames {
  WeightNames(const char* name) : all{name} {}
  WeightNames(std::string name) : all{std::move(name)} {}
  WeightNames(std::initializer_list<std::string> names) : all(names) {}
  std::vector<std::string> all;
};

/// A layer that shares parameters with all others of the same key, such as a head's weight with the
/// embedding's. `weight` names one parameter or several, such as {"weight", "bias"}, which are
/// matched by position with those of the other layers. Its forward is that of `layer`.
struct TiedLayerSpec {
  std::string key;
  WeightNames weight;
  exec::LayerSpec layer;
  operator exec::LayerSpec() const;
};

/// Returns `layer` with a forward that takes these keyword arguments of the batch from its
/// CallContext.
exec::LayerSpec keyword_layer(exec::LayerSpec layer, std::vector<std::string> keywords);

/// Marks `layer` as using LibTorch's global generator, for example for dropout.
exec::LayerSpec random_layer(exec::LayerSpec layer);

/// Marks `layer` as possibly returning different results for the same inputs, for example because
/// it has its own generator or counts its calls.
exec::LayerSpec varying_layer(exec::LayerSpec layer);

/// Returns `layer` with its parameters frozen: all of them, or those whose name contains a match of
/// `pattern` (ECMAScript, case-insensitive). Frozen parameters get no gradient, no optimizer state
/// and no update, but are in checkpoints. Throws InputError if the pattern is invalid.
exec::LayerSpec frozen(exec::LayerSpec layer, const std::string& pattern = "");
/// Returns `layer` with the parameters of these names frozen.
exec::LayerSpec frozen_parameters(exec::LayerSpec layer, const std::vector<std::string>& names);

}  // namespace pipewright::engine
