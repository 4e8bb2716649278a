#include "selective.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include "pipewright/exec/stage/split_backward.hpp"
#include "pipewright/plan/statistics.hpp"

namespace pipewright::profiler {
namespace {

constexpr int pairs = 7;

/// Returns how long the whole backward takes, including the device's work on a GPU.
double backward_seconds(const Trial& trial) {
  const exec::Tensors outputs = trial.forward(trial.leaves());
  const exec::Tensors gradients = ones_for(outputs);
  trial.bench.finish();
  const auto begin = std::chrono::steady_clock::now();
  exec::full_backward(outputs, gradients);
  trial.bench.finish();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

void measure_selective(const Trial& trial, plan::LayerCost& cost) {
  if (trial.layer == trial.bench.loss())
    return;
  Trial selective = trial;
  selective.selective = true;
  plan::LayerCost again;
  measure_saved(selective, again);
  cost.selective_activation = std::max(plan::Bytes{}, cost.activation - again.activation);
  if (cost.selective_activation == plan::Bytes{})
    return;
  std::vector<double> longer;  // alternating, because the machine's speed drifts
  for (int pair = 0; pair < pairs; ++pair) {
    const double plain = backward_seconds(trial);
    longer.push_back(backward_seconds(selective) - plain);
  }
  cost.selective_forward = {std::max(0.0, plan::median(longer))};
}

}  // namespace pipewright::profiler
