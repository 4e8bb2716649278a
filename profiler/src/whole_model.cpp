#include "whole_model.hpp"

namespace pipewright::profiler {
namespace {

using Kind = plan::InstructionKind;

std::vector<plan::Instruction> both_backwards() {
  return {{Kind::Load, 0, 0},          {Kind::Forward, 0, 0},       {Kind::Backward, 0, 0},
          {Kind::OptimizerStep, 0},    {Kind::Load, 0, 1},          {Kind::Forward, 0, 1},
          {Kind::InputGradient, 0, 1}, {Kind::WeightGradient, 0, 1}};
}

}  // namespace

Rehearsal whole_model(const LayerBench& bench) {
  StagePart all;
  all.last = static_cast<int>(bench.loss());
  return {bench, {{0, all}}, both_backwards()};
}

plan::LayerTimes typical_times(const LayerSamples& samples, bool has_parameters) {
  plan::LayerTimes times = times_of(samples);
  if (has_parameters)
    return times;
  times.input_gradient = times.input_gradient + times.weight_gradient - times.splitting;
  times.weight_gradient = times.splitting = {};
  return times;
}

}  // namespace pipewright::profiler
