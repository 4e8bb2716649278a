#include "gradient_norm.hpp"

#include <cmath>

namespace pipewright::exec {

void GradientNorm::add(const Stage& stage, const TrainingSetup& setup) {
  const at::NoGradGuard no_grad;
  const auto& parameters = stage.optimizer().parameters();
  std::int64_t ordinal = 0;
  int last_layer = -1;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const int layer = stage.layer_of(p);
    ordinal = layer == last_layer ? ordinal + 1 : 0;
    last_layer = layer;
    if (tied_owner(setup.layers, layer) != layer && stage.tied_parameter(layer) == p)
      continue;
    squares_[{layer, ordinal}] = parameters[p].grad().to(at::kDouble).square().sum().item<double>();
  }
}

Tensors GradientNorm::to_tensors() const {
  std::vector<std::int64_t> names;
  std::vector<double> values;
  for (const auto& [name, square] : squares_) {
    names.insert(names.end(), {name.first, name.second});
    values.push_back(square);
  }
  return {torch::tensor(names, at::kLong), torch::tensor(values, at::kDouble)};
}

void GradientNorm::add(const Tensors& from_other) {
  const auto* const names = from_other.at(0).const_data_ptr<std::int64_t>();
  const auto* const values = from_other.at(1).const_data_ptr<double>();
  for (std::int64_t at = 0; at < from_other[1].numel(); ++at)
    squares_[{names[2 * at], names[2 * at + 1]}] = values[at];
}

double GradientNorm::norm() const {
  double sum = 0;
  for (const auto& [name, square] : squares_)
    sum += square;
  return std::sqrt(sum);
}

bool GradientNorm::is_finite() const { return std::isfinite(norm()); }

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

double gradient_scale(const TrainingSetup& setup, double loss_scale, double scaled_norm) {
  const double norm = scaled_norm / loss_scale;
  const double clip =
      setup.clip_norm > 0 && norm > setup.clip_norm ? setup.clip_norm / (norm + 1e-6) : 1;
  return clip / loss_scale;
}

}  // namespace pipewright::exec
