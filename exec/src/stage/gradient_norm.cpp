#include "pipewright/exec/stage/gradient_norm.hpp"

#include <ATen/ATen.h>

namespace pipewright::exec {
namespace {

bool counts(const Stage& stage, const TrainingSetup& setup, std::size_t parameter) {
  const TrainedParameter& own = stage.layers().trained()[parameter];
  const bool is_repeated = own.tied_place && tied_owner(setup.layers, own.layer) != own.layer;
  return !is_repeated && (own.cut || stage.spec().place.index == 0);
}

}  // namespace

void GradientNorm::add(const Stage& stage, const TrainingSetup& setup, ReplicaIndex of_rest,
                       ReplicaIndex of_experts) {
  const Optimizer& optimizer = stage.optimizer();
  const std::vector<Slice> slices = optimizer.copied().slices(of_rest, of_experts);
  Tensors own;
  for (std::size_t s = 0; s < slices.size(); ++s) {
    const std::size_t parameter = slices[s].parameter;
    if (counts(stage, setup, parameter))
      own.push_back(stage.spec().shard.gradients
                        ? optimizer.gradients()[s]
                        : slices[s].of(optimizer.parameters()[parameter].grad()));
  }
  squares_.add(own);
}

Tensors GradientNorm::to_tensors() const {
  return squares_.bins().defined() ? Tensors{squares_.bins()} : Tensors{};
}

void GradientNorm::add(const Tensors& from_other) {
  for (const at::Tensor& bins : from_other)
    squares_.add_bins(bins);
}

void LossScaler::update(bool finite) {
  if (!options_.dynamic)
    return;
  if (!finite) {
    scale_ /= 2;
    good_steps_ = 0;
  } else if (++good_steps_ == options_.growth_interval) {
    scale_ *= 2;
    good_steps_ = 0;
  }
}

bool needs_norm(const TrainingSetup& setup) {
  return setup.clip_norm > 0 || setup.loss_scaling.dynamic || setup.loss_scaling.scale != 1;
}

GradientUse use_of_gradients(const TrainingSetup& setup, double loss_scale,
                             const at::Tensor& scaled_norm) {
  at::Tensor clip = at::ones_like(scaled_norm);
  if (setup.clip_norm > 0) {
    const at::Tensor norm = scaled_norm / loss_scale;
    clip = at::where(norm > setup.clip_norm, setup.clip_norm / (norm + 1e-6), clip);
  }
  return {clip / loss_scale, scaled_norm.isfinite().logical_not().to(at::kFloat)};
}

}  // namespace pipewright::exec
