#include "layer_memory.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "pipewright/exec/stage/split_backward.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace pipewright::profiler {

using plan::Bytes;

exec::Tensors Trial::parameters() const {
  if (layer == bench.loss())
    return {};
  return stage.layers()[static_cast<std::size_t>(layer - stage.spec().first)]->parameters();
}

namespace {

Bytes size_of(const at::Tensor& tensor) { return {static_cast<std::int64_t>(tensor.nbytes())}; }

/// A copy of the input that nobody else holds, as the output of a node that saves nothing: once it
/// is dropped, it stays alive only if the layer has kept it.
at::Tensor inner_copy(const at::Tensor& input, bool needs_gradient) {
  at::Tensor copy = input.detach().clone();
  if (!needs_gradient)
    return copy;
  return copy + at::zeros({}, copy.options()).requires_grad_();
}

/// A backward on a GPU is computed by a thread of autograd's, which lets go of the gradients that
/// it has handed over once the caller may have gone on. It takes one backward after the other: when
/// a small one that hands over nothing is done, it holds nothing of those before.
void wait_for_autograd(const Trial& trial) {
  if (trial.input.is_cpu())
    return;
  const auto options = trial.input.options().dtype(at::kFloat);
  exec::full_backward({at::zeros({}, options).requires_grad_() * 1}, {});
}

/// What is held before something is measured.
Bytes held_at_rest(const Trial& trial) {
  wait_for_autograd(trial);
  trial.bench.account().reset_peak();
  return trial.bench.account().held();
}

}  // namespace

void measure_saved(const Trial& trial, plan::LayerCost& cost) {
  // Drops output and input one after the other while the graph stays.
  exec::MemoryAccount& account = trial.bench.account();
  at::Tensor input = inner_copy(trial.input, trial.input_needs_gradient());
  const Bytes input_size = size_of(input);
  const Bytes before = held_at_rest(trial);
  at::Tensor output = trial.forward(input);
  cost.forward_peak = account.peak() - before;
  cost.output = size_of(output);
  cost.output_is_view = output.storage().is_alias_of(input.storage());

  const auto graph = output.grad_fn();  // keeps what the backward needs, and nothing else
  const Bytes with_output = account.held();
  output = at::Tensor();
  const Bytes without_output = account.held();
  cost.saves_output = !cost.output_is_view && without_output == with_output;
  cost.activation = without_output - before;
  input = at::Tensor();
  cost.saves_input = without_output - account.held() < input_size;
}

namespace {

/// As when the forward is to run again: nothing is kept for a backward.
void measure_without_graph(const Trial& trial, plan::LayerCost& cost) {
  const at::NoGradGuard no_grad;
  exec::MemoryAccount& account = trial.bench.account();
  const Bytes before = held_at_rest(trial);
  trial.forward(trial.input);
  cost.forward_peak_without_graph = std::max(Bytes{1}, account.peak() - before);
}

/// The gradient of the output is made inside the backward, as it is in a stage of several layers.
void measure_backward_peak(const Trial& trial, plan::LayerCost& cost) {
  exec::MemoryAccount& account = trial.bench.account();
  at::Tensor input = trial.input.detach().clone();
  if (trial.input_needs_gradient())
    input.requires_grad_();
  at::Tensor output = trial.forward(input);
  if (!output.requires_grad())
    return;
  const at::Tensor ones = at::ones_like(output);  // outlives the backward, so it does not count
  const at::Tensor root = (output * ones).sum();
  output = at::Tensor();
  const Bytes before = held_at_rest(trial);
  exec::full_backward({root}, {});
  cost.backward_peak = std::max(Bytes{}, account.peak() - before);
}

/// What the input gradient lets go of, less the gradients on its way that it leaves to the weight
/// gradient: only the sum of the two can be measured. Without a way to the input it leaves all.
void measure_freed(const Trial& trial, plan::LayerCost& cost) {
  exec::MemoryAccount& account = trial.bench.account();
  at::Tensor input = trial.input.detach().clone();
  if (trial.input_needs_gradient())
    input.requires_grad_();
  const Bytes before = held_at_rest(trial);
  at::Tensor output = trial.forward(input);
  if (!output.requires_grad())
    return;
  const Bytes with_output = account.held();
  account.reset_peak();
  at::Tensor gradient = at::ones_like(output);
  exec::SplitBackward split;  // holds what a stage holds between I and W
  split.input_gradients({output}, {gradient}, {input});
  cost.input_gradient_peak = std::max(Bytes{1}, account.peak() - with_output);
  wait_for_autograd(trial);
  output = at::Tensor();
  const Bytes with_gradient = account.held();
  gradient = at::Tensor();
  const Bytes with_input = account.held();
  const Bytes kept = with_input - before;
  input = at::Tensor();
  const Bytes held = account.held();
  cost.output_gradient_for_weights = with_input == with_gradient;
  cost.input_for_weights = held == with_input;
  account.reset_peak();
  split.weight_gradients();
  cost.weight_gradient_peak = std::max(Bytes{1}, account.peak() - held);
  cost.freed_by_input_gradient = std::clamp(cost.activation - kept, Bytes{}, cost.activation);
  cost.gradients_for_weights = std::max(Bytes{}, kept - cost.activation);
}

}  // namespace

void measure_memory(const Trial& trial, plan::LayerCost& cost) {
  for (const at::Tensor& parameter : trial.parameters())
    cost.parameters += size_of(parameter);
  measure_saved(trial, cost);
  measure_without_graph(trial, cost);
  measure_backward_peak(trial, cost);
  measure_freed(trial, cost);
}

}  // namespace pipewright::profiler
