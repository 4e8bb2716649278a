#include "section_pass.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

namespace pipewright::profiler {
namespace {

using Kind = plan::InstructionKind;

constexpr double gradient_deviation = 1e-3;  // of simulated gradients

/// Returns the boundaries of the stages: all layers before the section are one stage, and all
/// layers after it.
std::vector<int> bounds_of(const Section& section, int layers) {
  std::vector<int> bounds{0};
  for (const int border : {section.first, section.last, layers})
    if (border > bounds.back())
      bounds.push_back(border);
  return bounds;
}

/// Returns a program with the section's stage on the first rank and all others on a second rank.
RankProgram both_backwards(const Section& section, int layers) {
  RankProgram played;
  played.partition.boundaries = bounds_of(section, layers);
  const int stage = stage_of(section);
  std::vector<int> ranks(played.partition.boundaries.size() - 1, 1);
  ranks[static_cast<std::size_t>(stage)] = 0;
  plan::Program& program = played.program;
  program.microbatches = 2;
  program.placement = plan::one_route(ranks);
  program.ranks = {{{Kind::Load, stage, 0, 0},
                    {Kind::Forward, stage, 0, 0},
                    {Kind::Backward, stage, 0, 0},
                    {Kind::Load, stage, 1, 0},
                    {Kind::Forward, stage, 1, 0},
                    {Kind::InputGradient, stage, 1, 0},
                    {Kind::WeightGradient, stage, 1, 0},
                    {Kind::OptimizerStep, stage}}};
  program.ranks.resize(ranks.size() > 1 ? 2 : 1);
  played.gradient_groups = {0, 0};
  return played;
}

/// Returns simulated gradients for each floating-point output, which has a gradient in training.
exec::Tensors made_up_gradients(const exec::Stage& stage, const Section& section,
                                exec::Tensors values) {
  const at::NoGradGuard no_grad;
  for (int layer = section.first; layer < section.last; ++layer)
    values = stage.layers().run(layer, values, {}, {});
  const at::Generator generator = at::detail::createCPUGenerator(/*seed_val=*/1);
  for (at::Tensor& value : values)
    value = value.defined() && at::isFloatingType(value.scalar_type())
                ? (at::randn(value.sizes(), generator) * gradient_deviation)
                      .to(value.device(), value.scalar_type())
                : at::Tensor();
  return values;
}

}  // namespace

int stage_of(const Section& section) { return section.first > 0 ? 1 : 0; }

Rehearsal section_pass(const LayerBench& bench, const Section& section,
                       const exec::Tensors& inputs) {
  const RankProgram played = both_backwards(section, bench.loss());
  std::vector<StageBoundaries> borders(played.partition.boundaries.size() - 1);
  const auto stage = static_cast<std::size_t>(stage_of(section));
  if (section.first > 0)
    borders[stage].inputs = inputs;
  Rehearsal rehearsal(bench, played, std::move(borders));
  if (section.last < bench.loss())
    rehearsal.take_gradients(
        static_cast<int>(stage),
        made_up_gradients(rehearsal.stage(static_cast<int>(stage)), section, inputs));
  return rehearsal;
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
