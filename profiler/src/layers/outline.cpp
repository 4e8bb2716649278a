#include "pipewright/profiler/layers/outline.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "pipewright/exec/training/without_memory.hpp"
#include "pipewright/plan/costs/training_memory.hpp"
#include "tensor_bytes.hpp"

namespace pipewright::profiler {
namespace {

constexpr std::int64_t activations_per_output = 12;  // typical for a transformer layer

/// Returns the bytes per trainable parameter.
std::int64_t bytes_in_training(const exec::TrainingSetup& setup) {
  const auto own = static_cast<std::int64_t>(c10::elementSize(setup.precision));
  constexpr std::int64_t full = 4;
  const std::int64_t gradient = setup.optimizer.fp32_gradients ? full : own;
  const std::int64_t master = own < full ? full : 0;
  return own + gradient + master + full * plan::states_of(setup.optimizer.kind);
}

std::string shapes_in_words(const exec::Tensors& tensors) {
  std::string text;
  for (const at::Tensor& tensor : tensors)
    text += tensor.defined() ? fmt::format(" {} [{}]", c10::toString(tensor.scalar_type()),
                                           fmt::join(tensor.sizes(), ", "))
                             : std::string(" none");
  return text;
}

/// Returns the inputs of the first layer with the types to which the training casts them, as meta
/// tensors.
exec::Tensors first_inputs(const exec::TrainingSetup& setup) {
  exec::Tensors inputs = setup.data->inputs(0, 0);
  for (at::Tensor& input : inputs)
    if (input.defined())
      input = at::empty(input.sizes(),
                        at::TensorOptions(at::kMeta).dtype(at::isFloatingType(input.scalar_type())
                                                               ? setup.precision
                                                               : input.scalar_type()));
  return inputs;
}

exec::Tensors zeros_like_all(exec::Tensors tensors) {
  for (at::Tensor& tensor : tensors)
    if (tensor.defined())
      tensor = at::zeros(tensor.sizes(), tensor.options().device(at::kCPU));
  return tensors;
}

exec::Tensors without_numbers(exec::Tensors tensors) {
  for (at::Tensor& tensor : tensors)
    if (tensor.defined())
      tensor = tensor.to(at::kMeta);
  return tensors;
}

/// Propagates shapes from layer to layer.
class Shapes {
 public:
  explicit Shapes(const LayerBench& bench) : bench_(bench), setup_(bench.setup()) {
    const auto& layers = setup_.layers;
    if (std::any_of(layers.begin(), layers.end(), [](const auto& l) { return !l.kind.empty(); }))
      inputs_ = first_inputs(setup_);
  }

  LayerOutline next(int layer) {
    const exec::LayerSpec& spec = setup_.layers[static_cast<std::size_t>(layer)];
    LayerOutline outline{.input_has_gradient = trains_};
    if (inputs_ && !spec.kind.empty())
      outline.alike = fmt::format("{};{}{}", spec.kind, shapes_in_words(*inputs_),
                                  trains_ ? "" : " without gradient");
    const std::int64_t numbers = numbers_of(spec, layer);
    outline.training = {numbers * bytes_in_training(setup_)};
    trains_ = trains_ || numbers > 0;
    if (!inputs_)
      return outline;
    const exec::Tensors before = *inputs_;
    inputs_ = outputs_of(spec, layer, outline.alike);
    outline.keeps_shape = inputs_ && shapes_in_words(*inputs_) == shapes_in_words(before);
    if (inputs_)
      outline.activations = bytes_of(*inputs_) * activations_per_output;
    return outline;
  }

  /// Returns the outline of the loss, which belongs to the last layer.
  LayerOutline loss() const {
    const std::string& last = setup_.layers.back().kind;
    LayerOutline outline{.input_has_gradient = trains_};
    if (inputs_ && !last.empty())
      outline.alike = fmt::format("the loss of {};{}", last, shapes_in_words(*inputs_));
    return outline;
  }

 private:
  std::int64_t numbers_of(const exec::LayerSpec& spec, int layer) {
    if (const auto known = numbers_.find(spec.kind); !spec.kind.empty() && known != numbers_.end())
      return known->second;
    return numbers_[spec.kind] =
               exec::trained_numbers(*exec::build_without_memory(setup_, layer, bench_.place()));
  }

  /// Returns the outputs' shapes. Layers are built whole, because a partitioned layer would
  /// communicate.
  std::optional<exec::Tensors> outputs_of(const exec::LayerSpec& spec, int layer,
                                          const std::string& alike) {
    if (const auto known = outputs_.find(alike); !alike.empty() && known != outputs_.end())
      return known->second;
    auto outputs =
        exec::outputs_without_memory(spec, *exec::build_without_memory(setup_, layer), *inputs_);
    if (!outputs && !spec.kind.empty())
      outputs = outputs_with_memory(spec, layer);
    if (!alike.empty())
      outputs_[alike] = outputs;
    return outputs;
  }

  std::optional<exec::Tensors> outputs_with_memory(const exec::LayerSpec& spec, int layer) const {
    const at::NoGradGuard no_grad;
    try {
      const auto built = exec::build_layer(setup_, layer);
      return without_numbers(
          exec::run_layer(spec, *built, layer, setup_.base_seed, zeros_like_all(*inputs_), {}));
    } catch (const std::exception&) {
      return {};  // the measurement will report the error
    }
  }

  const LayerBench& bench_;
  const exec::TrainingSetup& setup_;
  std::optional<exec::Tensors> inputs_;  // of the next layer; nothing if unknown
  bool trains_ = false;                  // a previous layer has parameters
  std::map<std::string, std::int64_t> numbers_;
  std::map<std::string, std::optional<exec::Tensors>> outputs_;
};

}  // namespace

std::vector<LayerOutline> outlines_of(const LayerBench& bench) {
  Shapes shapes(bench);
  std::vector<LayerOutline> outlines;
  for (int layer = 0; layer < bench.loss(); ++layer)
    outlines.push_back(shapes.next(layer));
  outlines.push_back(shapes.loss());
  return outlines;
}

}  // namespace pipewright::profiler
