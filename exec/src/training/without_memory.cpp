#include "pipewright/exec/training/without_memory.hpp"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <torch/library.h>

#include <algorithm>
#include <string>

#include "pipewright/exec/training/training_setup.hpp"

namespace pipewright::exec {
namespace {

/// A dispatch key that LibTorch leaves unused. While a thread has it set, all its calls pass
/// through `make_on_meta` first.
constexpr auto mode = c10::DispatchKey::TESTING_ONLY_GenericMode;

/// Returns the output sizes of operators whose "meta" kernels LibTorch has in Python only.
std::optional<std::vector<std::int64_t>> sizes_by_rule(const std::string& name,
                                                       const c10::IValue* arguments) {
  const auto sizes_of = [&](int a) { return arguments[a].toTensor().sizes().vec(); };
  if (name == "aten::layer_norm")
    return sizes_of(0);
  if (name == "aten::embedding") {
    auto sizes = sizes_of(1);
    sizes.push_back(sizes_of(0).back());
    return sizes;
  }
  if (name == "aten::scaled_dot_product_attention") {
    auto sizes = sizes_of(0);
    sizes.back() = sizes_of(2).back();
    return sizes;
  }
  return {};
}

/// Makes a call create its tensors on the device "meta". If the call has no tensor argument whose
/// device it follows, this also applies if it names no device.
void make_on_meta(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard outside(mode);
  const auto& arguments = operation.schema().arguments();
  if (arguments.empty())
    return operation.callBoxed(stack);
  const std::size_t first = stack->size() - arguments.size();
  if (const c10::IValue& self = (*stack)[first]; self.isTensor() && self.toTensor().is_meta())
    if (const auto sizes = sizes_by_rule(operation.schema().name(), &self)) {
      at::Tensor made = self.toTensor().new_empty(*sizes);
      torch::jit::drop(*stack, arguments.size());
      torch::jit::push(*stack, std::move(made));
      return;
    }
  const bool has_tensor = std::any_of(
      stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end(),
      [](const c10::IValue& value) { return value.isTensor() || value.isTensorList(); });
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    c10::IValue& value = (*stack)[first + a];
    if (arguments[a].name() == "device" && !(has_tensor && value.isNone()))
      value = c10::Device(c10::DeviceType::Meta);
  }
  operation.callBoxed(stack);
}

/// Registers the fallback once, for the rest of the process.
void declare_mode() {
  static auto* const declared = [] {
    auto* const library = new torch::Library(torch::Library::IMPL, "_", mode, __FILE__, __LINE__);
    library->fallback(torch::CppFunction::makeFromBoxedFunction<&make_on_meta>());
    return library;
  }();
  (void)declared;
}

template <class Build>
auto without_numbers_or_with(const Build& build) {
  try {
    const WithoutMemory guard;
    return build();
  } catch (const std::exception&) {
    return build();  // either succeeds, or says what is wrong
  }
}

}  // namespace

WithoutMemory::WithoutMemory() : guard_((declare_mode(), mode)) {}

WithoutMemory::~WithoutMemory() = default;

std::shared_ptr<Layer> build_without_memory(const std::vector<LayerSpec>& specs, int index) {
  return without_numbers_or_with([&] { return build_layer(specs, index, /*base_seed=*/0); });
}

std::shared_ptr<Layer> build_without_memory(const TrainingSetup& setup, int index,
                                            const TensorParallelPlace& place) {
  return without_numbers_or_with([&] { return build_layer(setup, index, at::kCPU, place); });
}

std::optional<Tensors> outputs_without_memory(const LayerSpec& spec, Layer& layer,
                                              const Tensors& inputs) {
  const WithoutMemory guard;
  const at::NoGradGuard no_grad;
  try {
    return run_layer(spec, layer, /*index=*/0, /*base_seed=*/0, inputs, {});
  } catch (const std::exception&) {
    return {};  // with memory it either runs, or says what is wrong
  }
}

std::int64_t trained_numbers(const Layer& layer) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : layer.parameters())
    count += parameter.requires_grad() ? parameter.numel() : 0;
  return count;
}

}  // namespace pipewright::exec
