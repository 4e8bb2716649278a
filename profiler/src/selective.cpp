#include "selective.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>

#include "layer_memory.hpp"
#include "pipewright/plan/statistics.hpp"

namespace pipewright::profiler {
namespace {

constexpr int pairs = 7;

/// Of the whole backward, on a GPU until it has been computed.
double backward_seconds(const std::function<at::Tensor(const at::Tensor&)>& forward,
                        const Subject& subject, const at::Tensor& model_input,
                        bool needs_gradient) {
  at::Tensor input = model_input.detach().clone();
  if (needs_gradient)
    input.requires_grad_();
  const at::Tensor output = forward(input);
  const at::Tensor gradient = at::ones_like(output);
  if (subject.finish)
    subject.finish();
  const auto begin = std::chrono::steady_clock::now();
  torch::autograd::backward({output}, {gradient});
  if (subject.finish)
    subject.finish();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

void measure_selective(const Probe& probe, const Subject& subject, const at::Tensor& input,
                       bool input_needs_gradient, plan::LayerCost& cost) {
  if (!probe.selective)
    return;
  Probe selective = probe;
  selective.forward = probe.selective;
  plan::LayerCost again;
  measure_memory(selective, subject, input, input_needs_gradient, again);
  cost.selective_activation = std::max(plan::Bytes{}, cost.activation - again.activation);
  if (cost.selective_activation == plan::Bytes{})
    return;
  std::vector<double> longer;  // measured in turn: the machine drifts
  for (int pair = 0; pair < pairs; ++pair) {
    const double plain = backward_seconds(probe.forward, subject, input, input_needs_gradient);
    longer.push_back(backward_seconds(probe.selective, subject, input, input_needs_gradient) -
                     plain);
  }
  cost.selective_forward = {std::max(0.0, plan::median(longer))};
}

}  // namespace pipewright::profiler
