#pragma once

// How long a layer took each time that it was run, and what is typical of that.

#include <array>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::profiler {

/// Seconds of a layer, one entry each time.
struct LayerSamples {
  std::vector<double> forward;
  std::vector<double> backward;  // in one go
  std::vector<double> input_gradient;
  std::vector<double> weight_gradient;
  std::vector<double> optimizer_step;

  void append(const LayerSamples& other);
};
inline constexpr std::array sample_kinds{
    &LayerSamples::forward, &LayerSamples::backward, &LayerSamples::input_gradient,
    &LayerSamples::weight_gradient, &LayerSamples::optimizer_step};

/// Where a layer's part of such an instruction belongs: a Recompute is a forward. Null: nowhere.
std::vector<double> LayerSamples::*samples_of(plan::InstructionKind kind);

/// The typical times of what was sampled (plan::typical_mean). Where the backward was sampled only
/// in one go, or only in halves, `planned` says how the one follows from the other.
plan::LayerTimes times_of(const LayerSamples& samples, const plan::LayerTimes& planned = {});

}  // namespace pipewright::profiler
