#include "pipewright/exec/rank/serial.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "pipewright/exec/device/gpu.hpp"
#include "pipewright/exec/rank/reductions.hpp"
#include "pipewright/exec/rank/step_result.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace pipewright::exec {
namespace {

std::map<int, std::vector<int>> by_group(int microbatches, const std::vector<int>& groups) {
  std::map<int, std::vector<int>> members;
  for (int m = 0; m < microbatches; ++m)
    members[groups.empty() ? 0 : groups.at(static_cast<std::size_t>(m))].push_back(m);
  return members;
}

plan::Instruction action(plan::InstructionKind kind, int microbatch) {
  return {kind, 0, microbatch, 0};
}

}  // namespace

struct SerialTrainer::State {
  State(const TrainingSetup& s, int m, const std::vector<int>& groups, const RankDevice& device)
      : setup(s), microbatches(m), stream(compute_stream(device)), scaler(s.loss_scaling) {
    const OnStream on_stream(stream);
    stage.emplace(StageSpec{.index = 0,
                            .first = 0,
                            .last = static_cast<int>(s.layers.size()),
                            .microbatches = by_group(m, groups),
                            .device = device.device,
                            .place = {.groups = std::max(1, s.tensor_groups)}},
                  setup);
  }

  /// Steps the optimizer once all gradients are summed, and scales, clips or skips as a pipeline
  /// does.
  void update(int step, StepResult& result) {
    reduce_tied({&*stage}, TiesOf::OneStage, setup, {{0}, 0, nullptr});
    stage->finish_gradients();
    GradientUse use;
    if (needs_norm(setup)) {
      GradientNorm norm;
      norm.add(*stage, setup);
      use = use_and_tell(setup, scaler.scale(), norm, result);
    }
    stage->update({plan::InstructionKind::OptimizerStep}, learning_rate_at(setup.optimizer, step),
                  use);
    scaler.update(!result.skipped);
  }

  TrainingSetup setup;
  int microbatches;
  Stream stream;
  std::optional<Stage> stage;
  LossScaler scaler;
};

SerialTrainer::SerialTrainer(const TrainingSetup& setup, int microbatches, std::vector<int> groups,
                             const RankDevice& device)
    : state_(std::make_unique<State>(setup, microbatches, groups, device)) {}

SerialTrainer::~SerialTrainer() = default;

StepResult SerialTrainer::step(int step) {
  // One thread, as on a rank: with more threads the kernels would add in another order.
  at::set_num_threads(1);
  const auto begin = std::chrono::steady_clock::now();
  const OnStream stream(state_->stream);
  Stage& stage = *state_->stage;
  stage.begin({.data = state_->setup.data,
               .step = step,
               .microbatches = state_->microbatches,
               .loss_scale = state_->scaler.scale()},
              /*slots=*/1);
  for (int m = 0; m < state_->microbatches; ++m) {
    stage.load(action(plan::InstructionKind::Load, m));
    stage.compute(action(plan::InstructionKind::Forward, m));
    stage.compute(action(plan::InstructionKind::Backward, m));
  }
  stage.end();
  StepResult result;
  tell_losses(stage.losses(), result);
  state_->update(step, result);
  state_->stream.finish();
  const std::chrono::duration<double> duration = std::chrono::steady_clock::now() - begin;
  result.duration = {duration.count()};
  return result;
}

Evaluation SerialTrainer::evaluate(const Dataset& data, int microbatches, int step) {
  at::set_num_threads(1);
  const OnStream stream(state_->stream);
  Stage& stage = *state_->stage;
  stage.begin({.data = &data,
               .step = step,
               .microbatches = microbatches,
               .training = false,
               .keep_outputs = true},
              /*slots=*/1);
  for (int m = 0; m < microbatches; ++m) {
    stage.load(action(plan::InstructionKind::Load, m));
    stage.compute(action(plan::InstructionKind::Forward, m));
  }
  stage.end();
  Evaluation evaluation{.outputs = std::move(stage.kept_outputs())};
  tell_losses(stage.losses(), evaluation);
  return evaluation;
}

std::vector<at::Tensor> SerialTrainer::parameters() const {
  return parameters_of(state_->stage->layers().all());
}

LayerTensors SerialTrainer::named_parameters() const {
  const StageLayers& layers = state_->stage->layers();
  LayerTensors parameters;
  for (int layer = 0; layer < static_cast<int>(layers.all().size()); ++layer)
    for (const auto& named : layers.at(layer).named_parameters())
      parameters[{layer, named.key()}] = named.value();
  return parameters;
}

}  // namespace pipewright::exec
