#include "whole_model.hpp"

namespace pipewright::profiler {
namespace {

using Kind = plan::InstructionKind;

plan::Program both_backwards() {
  plan::Program program;
  program.microbatches = 2;
  program.placement = plan::one_route({0});
  program.ranks = {{{Kind::Load, 0, 0, 0},
                    {Kind::Forward, 0, 0, 0},
                    {Kind::Backward, 0, 0, 0},
                    {Kind::Load, 0, 1, 0},
                    {Kind::Forward, 0, 1, 0},
                    {Kind::InputGradient, 0, 1, 0},
                    {Kind::WeightGradient, 0, 1, 0},
                    {Kind::OptimizerStep, 0}}};
  return program;
}

}  // namespace

Rehearsal whole_model(const LayerBench& bench) {
  return {bench, {both_backwards(), {{0, bench.loss()}}, {0, 0}}, std::vector<StageBorders>(1)};
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
