#include "gradient_norm.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "pipewright/exec/training/cut_parameter.hpp"

namespace pipewright::exec {
namespace {

/// The parts of a gradient whose squares are added up by themselves: those of groups, and of each
/// of them those of experts.
Tensors parts_of(const at::Tensor& gradient, const CutParameter* cut, const ShardPlace& place) {
  if (cut == nullptr)
    return {gradient};
  const Tensors groups = place.groups == 1 ? Tensors{gradient} : group_parts(gradient, *cut, place);
  if (cut->experts == 0)
    return groups;
  Tensors parts;
  for (const at::Tensor& group : groups)
    for (const at::Tensor& expert : group.unbind(0))
      parts.push_back(expert);
  return parts;
}

}  // namespace

void GradientNorm::add(const Stage& stage, const TrainingSetup& setup) {
  const at::NoGradGuard no_grad;
  const auto& parameters = stage.optimizer().parameters();
  const ShardPlace& place = stage.spec().place;
  std::int64_t ordinal = 0;
  int last_layer = -1;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const int layer = stage.layer_of(p);
    ordinal = layer == last_layer ? ordinal + 1 : 0;
    last_layer = layer;
    if (tied_owner(setup.layers, layer) != layer && stage.tied_parameter(layer) == p)
      continue;
    const Tensors parts = parts_of(parameters[p].grad(), stage.cut_of(p), place);
    const CutParameter* const cut = stage.cut_of(p);
    std::int64_t group =
        cut == nullptr ? 0 : seat_of(*cut, place).index * static_cast<std::int64_t>(parts.size());
    for (const at::Tensor& part : parts)
      squares_[{layer, ordinal, group++}] = part.to(at::kDouble).square().sum();
  }
}

Tensors GradientNorm::to_tensors() const {
  std::vector<std::int64_t> names;
  Tensors values;
  for (const auto& [name, square] : squares_) {
    names.insert(names.end(), name.begin(), name.end());
    values.push_back(square);
  }
  const at::Tensor all = values.empty() ? at::zeros({0}, at::kDouble) : at::stack(values);
  return {at::tensor(names, at::kLong), all};
}

void GradientNorm::add(const Tensors& from_other) {
  const auto* const names = from_other.at(0).const_data_ptr<std::int64_t>();
  const at::Tensor& values = from_other.at(1);
  for (std::int64_t at = 0; at < values.numel(); ++at)
    squares_[{names[3 * at], names[3 * at + 1], names[3 * at + 2]}] = values[at];
}

at::Tensor GradientNorm::norm() const { return to_tensors().at(1).sum().sqrt(); }

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
