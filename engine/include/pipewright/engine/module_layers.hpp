#pragma once

// Layers from what users have: LibTorch modules, plain functions, and layers that share a weight.

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

/// A layer around a module, whose parameters, buffers and children it holds under the same names.
class WrappedLayer final : public exec::Layer {
 public:
  using Body =
      std::function<exec::Tensors(const exec::Tensors& inputs, const exec::CallContext& context)>;

  /// `module`: what `body` calls, or nothing where it is a mere function.
  WrappedLayer(std::shared_ptr<torch::nn::Module> module, Body body);

  exec::Tensors forward_all(const exec::Tensors& inputs,
                            const exec::CallContext& context) override {
    return body_(inputs, context);
  }
  void train(bool on = true) override;
  /// Those of a module that is a layer itself.
  std::vector<exec::CutParameter> cut_parameters() const override;
  std::vector<exec::ParameterAlias> aliases() override;

 private:
  std::shared_ptr<torch::nn::Module> module_;
  Body body_;
};

/// The one tensor that came in. Throws InputError when it is another number of them.
const at::Tensor& only(const exec::Tensors& inputs);

inline exec::Tensors as_tensors(at::Tensor output) { return {std::move(output)}; }
inline exec::Tensors as_tensors(exec::Tensors outputs) { return outputs; }

/// Calls a function of all tensors, or of the only one; `leading` arguments stand before them, and
/// behind them the call's context, if the function takes it.
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

/// A layer without parameters, from a function of a tensor or of Tensors to either.
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
/// tensor, or Tensors, and maybe the CallContext, and returns either.
template <class Build, class Forward = OwnForward>
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

/// A copy of `module` for layer `name`; what is frozen stays so. Throws InputError for a module
/// that cannot be cloned.
std::shared_ptr<torch::nn::Module> copy_of(const std::string& name,
                                           const torch::nn::Module& module);

/// Whether one of LibTorch's dropouts is in it.
bool drops_out(const torch::nn::Module& module);

/// A layer from a module that is there already. Every rank gets a copy, with the same weights under
/// every base_seed. It is marked `random` where the module drops out.
template <class Module, class Forward = OwnForward>
exec::LayerSpec copied_layer(const std::string& name, const std::shared_ptr<Module>& module,
                             Forward forward = {}) {
  exec::LayerSpec spec = module_layer(
      name, [name, module] { return std::dynamic_pointer_cast<Module>(copy_of(name, *module)); },
      forward);
  spec.random = drops_out(*module);
  spec.type = module->name();
  return spec;
}
template <class Module, class Forward = OwnForward>
exec::LayerSpec copied_layer(const std::string& name, const torch::nn::ModuleHolder<Module>& module,
                             Forward forward = {}) {
  return copied_layer(name, module.ptr(), forward);
}

/// A layer for each module of a list, copied, under the names that they have there.
std::vector<exec::LayerSpec> layers_of(const torch::nn::Sequential& list);
/// The same, but of a list in the list its own modules, as deep as there are lists: the second
/// module of a list "encoder" is the layer "encoder.1". What is derived from SequentialImpl is a
/// list, whose forward must be one of its modules behind the other.
std::vector<exec::LayerSpec> nested_layers_of(const torch::nn::Sequential& list);

/// The name of a parameter, or several of them.
struct WeightNames {
  WeightNames(const char* name) : all{name} {}
  WeightNames(std::string name) : all{std::move(name)} {}
  WeightNames(std::initializer_list<std::string> names) : all(names) {}
  std::vector<std::string> all;
};

/// A layer that shares parameters with all others of the same key, such as a head's weight with the
/// embedding's: `weight`, or {"weight", "bias"} with what others name in these places. Its forward
/// is that of `layer`.
struct TiedLayerSpec {
  std::string key;
  WeightNames weight;
  exec::LayerSpec layer;
  operator exec::LayerSpec() const;
};

/// `layer`, whose forward takes these keyword arguments of the batch from its CallContext.
exec::LayerSpec keyword_layer(exec::LayerSpec layer, std::vector<std::string> keywords);

/// `layer`, which draws from LibTorch's own generator: a dropout, say.
exec::LayerSpec random_layer(exec::LayerSpec layer);

/// `layer`, which may give something else in another call: it draws from a generator of its own,
/// say, or counts its calls.
exec::LayerSpec varying_layer(exec::LayerSpec layer);

/// `layer` with its parameters frozen, all or those in whose names `pattern` is found (ECMAScript,
/// any case): they get no gradient, no state of an optimizer and no update, but checkpoints have
/// them. Throws InputError when it is no pattern.
exec::LayerSpec frozen(exec::LayerSpec layer, const std::string& pattern = "");
/// The same of those with these names.
exec::LayerSpec frozen_parameters(exec::LayerSpec layer, const std::vector<std::string>& names);

}  // namespace pipewright::engine
