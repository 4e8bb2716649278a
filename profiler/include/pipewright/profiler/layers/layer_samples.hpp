#pragma once

// How long a layer took in each run, and typical times computed from that.

#include <array>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::profiler {

/// Times of a layer, in seconds, with one entry for each run.
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

/// Returns the samples to which a layer's part of such an instruction belongs: a Recompute counts
/// as a forward. Null if it belongs to none.
std::vector<double> LayerSamples::*samples_of(plan::InstructionKind kind);

/// Returns the typical times of the samples (plan::typical_mean). If the backward was sampled only
/// in one go, or only in halves, `planned` says how one follows from the other.
plan::LayerTimes times_of(const LayerSamples& samples, const plan::LayerTimes& planned = {});

}  // namespace pipewright::profiler
