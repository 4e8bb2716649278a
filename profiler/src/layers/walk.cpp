#include "walk.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>

#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/statistics.hpp"

namespace pipewright::profiler {
namespace {

constexpr std::size_t most_steps = 16;
constexpr std::int64_t most_bytes = std::int64_t{64} << 20;  // of the values of all steps
constexpr plan::Instruction first_load{plan::InstructionKind::Load, 0, 0, 0};

/// Returns a stage without layers, before the first or after the last one, which only loads.
std::unique_ptr<exec::Stage> loader(const LayerBench& bench, int at) {
  exec::StageSpec spec;
  spec.index = at > 0 ? 1 : 0;
  spec.first = spec.last = at;
  spec.microbatches = {{0, {0}}};
  return bench.build(std::move(spec));
}

void load_with(exec::Stage& stage, const LayerBench& bench, int step) {
  stage.begin({.data = bench.setup().data, .step = step}, /*slots=*/1);
  stage.load(first_load);
}

bool has_experts(const LayerBench& bench) {
  const auto& layers = bench.setup().layers;
  return std::any_of(layers.begin(), layers.end(),
                     [](const exec::LayerSpec& layer) { return layer.has_experts; });
}

}  // namespace

LoadedMicrobatch load_microbatch(const LayerBench& bench, int step) {
  const auto first = loader(bench, 0), last = loader(bench, bench.loss());
  load_with(*first, bench, step);
  load_with(*last, bench, step);
  return {first->inputs(first_load), last->targets(first_load)};
}

LoadTimes load_times(const LayerBench& bench) {
  constexpr int times = 9;
  const auto seconds_of = [&](exec::Stage& stage) {
    std::vector<double> seconds;
    for (int step = 0; step < times; ++step) {
      const auto begin = std::chrono::steady_clock::now();
      load_with(stage, bench, step);
      seconds.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return plan::Seconds{plan::typical_mean(seconds)};
  };
  return {seconds_of(*loader(bench, 0)), seconds_of(*loader(bench, bench.loss()))};
}

Walk::Walk(const LayerBench& bench, const std::vector<LayerOutline>& outlines)
    : bench_(bench), outlines_(outlines) {
  LoadedMicrobatch first = load_microbatch(bench, 0);
  values_.push_back(std::move(first.inputs));
  targets_ = std::move(first.targets);
  std::int64_t widest = 1;
  for (const LayerOutline& outline : outlines)
    widest = std::max(widest, outline.activations.value);
  const auto steps =
      std::clamp<std::size_t>(static_cast<std::size_t>(12 * most_bytes / widest), 1, most_steps);
  for (std::size_t step = 1; step < steps && has_experts(bench); ++step)
    values_.push_back(load_microbatch(bench, static_cast<int>(step)).inputs);
}

void Walk::go_to(int layer) {
  for (; at_ < layer; ++at_) {
    const auto& outline = outlines_[static_cast<std::size_t>(at_)];
    const bool is_passed_by =
        outline.keeps_shape && !outline.alike.empty() &&
        std::any_of(outlines_.begin(), outlines_.begin() + at_,
                    [&](const LayerOutline& before) { return before.alike == outline.alike; });
    if (!is_passed_by)
      run(at_);
  }
}

exec::Tensors Walk::inputs() const {
  const bool have_gradient = outlines_[static_cast<std::size_t>(at_)].input_has_gradient;
  exec::Tensors inputs;
  for (const at::Tensor& value : values_.front()) {
    inputs.push_back(value.defined() ? value.detach() : value);
    if (value.defined() && have_gradient && at::isFloatingType(value.scalar_type()))
      inputs.back().requires_grad_();
  }
  return inputs;
}

void Walk::went_to(int layer, std::vector<exec::Tensors> values) {
  at_ = layer;
  values_ = std::move(values);
}

void Walk::run(int layer) {
  const at::NoGradGuard no_grad;
  const exec::TrainingSetup& setup = bench_.setup();
  const auto built = exec::build_layer(setup, layer, bench_.where(), bench_.place());
  for (exec::Tensors& values : values_)
    values = exec::run_layer(setup.layers[static_cast<std::size_t>(layer)], *built, layer,
                             setup.base_seed, values, {});
}

}  // namespace pipewright::profiler
