#include "layer_memory.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "pipewright/exec/stage/split_backward.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "tensor_bytes.hpp"

namespace pipewright::profiler {

using plan::Bytes;

exec::Tensors Trial::parameters() const {
  if (layer == bench.loss())
    return {};
  return stage.layers().at(layer).parameters();
}

bool Trial::needs_gradient(const at::Tensor& input) const {
  return layer > 0 && input.defined() && at::isFloatingType(input.scalar_type());
}

exec::Tensors Trial::leaves() const {
  exec::Tensors copies;
  for (const at::Tensor& input : inputs) {
    copies.push_back(input.defined() ? input.detach().clone() : input);
    if (needs_gradient(input))
      copies.back().requires_grad_();
  }
  return copies;
}

bool have_gradient(const exec::Tensors& outputs) {
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const at::Tensor& t) { return t.defined() && t.requires_grad(); });
}

exec::Tensors ones_for(const exec::Tensors& outputs) {
  exec::Tensors ones;
  for (const at::Tensor& output : outputs)
    ones.push_back(output.defined() && output.requires_grad() ? at::ones_like(output)
                                                              : at::Tensor());
  return ones;
}

namespace {

/// Returns true if each of the outputs uses the memory of an input.
bool are_views(const exec::Tensors& outputs, const exec::Tensors& inputs) {
  return std::all_of(outputs.begin(), outputs.end(), [&](const at::Tensor& output) {
    return std::any_of(inputs.begin(), inputs.end(), [&](const at::Tensor& input) {
      return output.defined() && input.defined() && output.storage().is_alias_of(input.storage());
    });
  });
}

/// Returns copies of the inputs without other references, as outputs of nodes that save nothing.
/// Once they are dropped, they stay alive only if the layer has saved them.
exec::Tensors inner_copies(const Trial& trial) {
  exec::Tensors copies;
  for (const at::Tensor& input : trial.inputs) {
    at::Tensor copy = input.defined() ? input.detach().clone() : input;
    if (trial.needs_gradient(input))
      copy = copy + at::zeros({}, copy.options()).requires_grad_();
    copies.push_back(std::move(copy));
  }
  return copies;
}

/// Waits for autograd's thread, which computes a backward on a GPU and may release the gradients
/// that it has returned after the caller continues. It runs one backward after the other, so when a
/// small backward without results is done, the thread holds nothing of earlier ones.
void wait_for_autograd(const Trial& trial) {
  const at::Tensor& first = trial.inputs.front();
  if (first.is_cpu())
    return;
  const auto options = first.options().dtype(at::kFloat);
  exec::full_backward({at::zeros({}, options).requires_grad_() * 1}, {});
}

/// Returns the bytes that are allocated before something is measured.
Bytes held_at_rest(const Trial& trial) {
  wait_for_autograd(trial);
  trial.bench.account().reset_peak();
  return trial.bench.account().held();
}

}  // namespace

void measure_saved(const Trial& trial, plan::LayerCost& cost) {
  // Drops the outputs and then the inputs while the graph stays.
  exec::MemoryAccount& account = trial.bench.account();
  exec::Tensors inputs = inner_copies(trial);
  const Bytes input_size = bytes_of(inputs);
  const Bytes before = held_at_rest(trial);
  exec::Tensors outputs = trial.forward(inputs);
  cost.forward_peak = account.peak() - before;
  cost.output = bytes_of(outputs);
  cost.output_is_view = are_views(outputs, inputs);

  // The nodes keep the tensors that the backward needs, and nothing else.
  std::vector<std::shared_ptr<torch::autograd::Node>> graphs;
  for (const at::Tensor& output : outputs)
    if (output.defined())
      graphs.push_back(output.grad_fn());
  const Bytes with_output = account.held();
  outputs.clear();
  const Bytes without_output = account.held();
  cost.saves_output = !cost.output_is_view && without_output == with_output;
  cost.activation = without_output - before;
  inputs.clear();
  cost.saves_input = without_output - account.held() < input_size;
}

namespace {

/// Measures the peak of a forward that will be recomputed: it saves nothing for a backward.
void measure_without_graph(const Trial& trial, plan::LayerCost& cost) {
  const at::NoGradGuard no_grad;
  exec::MemoryAccount& account = trial.bench.account();
  const Bytes before = held_at_rest(trial);
  trial.forward(trial.inputs);
  cost.forward_peak_without_graph = std::max(Bytes{1}, account.peak() - before);
}

/// Measures the peak of a backward in which the output's gradient is created, as in a stage of
/// several layers.
void measure_backward_peak(const Trial& trial, plan::LayerCost& cost) {
  exec::MemoryAccount& account = trial.bench.account();
  const exec::Tensors inputs = trial.leaves();
  exec::Tensors outputs = trial.forward(inputs);
  if (!have_gradient(outputs))
    return;
  const exec::Tensors ones = ones_for(outputs);  // they outlive the backward and so do not count
  at::Tensor root;
  for (std::size_t at = 0; at < outputs.size(); ++at)
    if (ones[at].defined()) {
      const at::Tensor sum = (outputs[at] * ones[at]).sum();
      root = root.defined() ? root + sum : sum;
    }
  outputs.clear();
  const Bytes before = held_at_rest(trial);
  exec::full_backward({root}, {});
  cost.backward_peak = std::max(Bytes{}, account.peak() - before);
}

/// Measures the memory that the input gradient frees, less the gradients that it leaves to the
/// weight gradient: only this difference can be measured. If no gradient reaches the input, it
/// leaves everything to the weight gradient.
void measure_freed(const Trial& trial, plan::LayerCost& cost) {
  exec::MemoryAccount& account = trial.bench.account();
  exec::Tensors inputs = trial.leaves();
  const Bytes before = held_at_rest(trial);
  exec::Tensors outputs = trial.forward(inputs);
  if (!have_gradient(outputs))
    return;
  const Bytes with_output = account.held();
  account.reset_peak();
  exec::Tensors gradients = ones_for(outputs);
  exec::SplitBackward split;  // holds what a stage keeps between input and weight gradient
  split.input_gradients(outputs, gradients, inputs);
  cost.input_gradient_peak = std::max(Bytes{1}, account.peak() - with_output);
  wait_for_autograd(trial);
  outputs.clear();
  const Bytes with_gradient = account.held();
  gradients.clear();
  const Bytes with_input = account.held();
  const Bytes kept = with_input - before;
  inputs.clear();
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
    cost.parameters += bytes_of({parameter});
  measure_saved(trial, cost);
  measure_without_graph(trial, cost);
  measure_backward_peak(trial, cost);
  measure_freed(trial, cost);
}

}  // namespace pipewright::profiler
