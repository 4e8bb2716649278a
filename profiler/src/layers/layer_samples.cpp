#include "pipewright/profiler/layers/layer_samples.hpp"

#include <algorithm>

#include "pipewright/plan/statistics.hpp"

namespace pipewright::profiler {

void LayerSamples::append(const LayerSamples& other) {
  for (const auto kind : sample_kinds)
    (this->*kind).insert((this->*kind).end(), (other.*kind).begin(), (other.*kind).end());
}

std::vector<double> LayerSamples::*samples_of(plan::InstructionKind kind) {
  switch (kind) {
    case plan::InstructionKind::Forward:
    case plan::InstructionKind::Recompute:
      return &LayerSamples::forward;
    case plan::InstructionKind::Backward:
      return &LayerSamples::backward;
    case plan::InstructionKind::InputGradient:
      return &LayerSamples::input_gradient;
    case plan::InstructionKind::WeightGradient:
      return &LayerSamples::weight_gradient;
    case plan::InstructionKind::OptimizerStep:
      return &LayerSamples::optimizer_step;
    default:  // instructions without layers
      return nullptr;
  }
}

plan::LayerTimes times_of(const LayerSamples& samples, const plan::LayerTimes& planned) {
  const auto typical = [](const std::vector<double>& seconds) {
    return plan::Seconds{plan::typical_mean(seconds)};
  };
  plan::LayerTimes times;
  times.forward = typical(samples.forward);
  times.optimizer_step = typical(samples.optimizer_step);
  times.input_gradient = typical(samples.input_gradient);
  times.weight_gradient = typical(samples.weight_gradient);
  const plan::Seconds whole = typical(samples.backward);
  if (samples.backward.empty())
    return times;
  if (samples.input_gradient.empty() && samples.weight_gradient.empty()) {
    // Split in the same proportion as planned.
    const auto both = planned.input_gradient + planned.weight_gradient - planned.splitting;
    const double factor = both.value > 0 ? whole / both : 0;
    times.input_gradient = both.value > 0 ? planned.input_gradient * factor : whole;
    times.weight_gradient = planned.weight_gradient * factor;
    times.splitting = planned.splitting * factor;
    return times;
  }
  times.splitting = std::max(plan::Seconds{}, times.input_gradient + times.weight_gradient - whole);
  times.weight_gradient = whole + times.splitting - times.input_gradient;
  if (times.weight_gradient < plan::Seconds{}) {  // except for noise, all of it is input gradient
    times.input_gradient = whole;
    times.weight_gradient = times.splitting = {};
  }
  return times;
}

}  // namespace pipewright::profiler
