#include "layer_memory.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

namespace pipewright::profiler {

using plan::Bytes;

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

/// Drops output and input one after the other while the graph stays: what is still held then was
/// saved for the backward.
void measure_saved(const Probe& probe, const MemoryGauge& gauge, const at::Tensor& model_input,
                   bool needs_gradient, plan::LayerCost& cost) {
  at::Tensor input = inner_copy(model_input, needs_gradient);
  const Bytes input_size = size_of(input);
  const Bytes before = gauge.held();
  gauge.reset_peak();
  at::Tensor output = probe.forward(input);
  cost.forward_peak = gauge.peak() - before;
  cost.output = size_of(output);
  cost.output_is_view = output.storage().is_alias_of(input.storage());

  const auto graph = output.grad_fn();  // keeps what the backward needs, and nothing else
  const Bytes with_output = gauge.held();
  output = at::Tensor();
  const Bytes without_output = gauge.held();
  cost.saves_output = !cost.output_is_view && without_output == with_output;
  cost.activation = without_output - before;
  input = at::Tensor();
  cost.saves_input = without_output - gauge.held() < input_size;
}

/// The gradient of the output is made inside the backward, as it is in a stage of several layers.
void measure_backward_peak(const Probe& probe, const MemoryGauge& gauge,
                           const at::Tensor& model_input, bool needs_gradient,
                           plan::LayerCost& cost) {
  at::Tensor input = model_input.detach().clone();
  if (needs_gradient)
    input.requires_grad_();
  at::Tensor output = probe.forward(input);
  if (!output.requires_grad())
    return;
  const at::Tensor ones = at::ones_like(output);  // outlives the backward, so it does not count
  const at::Tensor root = (output * ones).sum();
  output = at::Tensor();
  const Bytes before = gauge.held();
  gauge.reset_peak();
  torch::autograd::backward({root}, {});
  cost.backward_peak = std::max(Bytes{}, gauge.peak() - before);
}

/// What the input gradient lets go of, less the gradients on its way that it leaves to the weight
/// gradient: only the sum of the two can be measured.
void measure_freed(const Probe& probe, const Subject& subject, const at::Tensor& model_input,
                   plan::LayerCost& cost) {
  const at::Tensor input = model_input.detach().clone().requires_grad_();
  const Bytes before = subject.memory.held();
  at::Tensor output = probe.forward(input);
  if (!output.requires_grad())
    return;
  const Bytes with_output = subject.memory.held();
  subject.memory.reset_peak();
  at::Tensor gradient = at::ones_like(output);
  const auto weights = subject.input_gradient(output, gradient, input).weights;
  cost.input_gradient_peak = std::max(Bytes{1}, subject.memory.peak() - with_output);
  output = gradient = at::Tensor();
  const Bytes held = subject.memory.held();
  const Bytes kept = held - before;
  subject.memory.reset_peak();
  weights();
  cost.weight_gradient_peak = std::max(Bytes{1}, subject.memory.peak() - held);
  cost.freed_by_input_gradient = std::clamp(cost.activation - kept, Bytes{}, cost.activation);
  cost.gradients_for_weights = std::max(Bytes{}, kept - cost.activation);
}

}  // namespace

void measure_memory(const Probe& probe, const Subject& subject, const at::Tensor& input,
                    bool input_needs_gradient, plan::LayerCost& cost) {
  const MemoryGauge& gauge = subject.memory;
  for (const at::Tensor& parameter : probe.parameters)
    cost.parameters += size_of(parameter);
  measure_saved(probe, gauge, input, input_needs_gradient, cost);
  measure_backward_peak(probe, gauge, input, input_needs_gradient, cost);
  if (subject.input_gradient && input_needs_gradient)
    measure_freed(probe, subject, input, cost);
}

}  // namespace pipewright::profiler
