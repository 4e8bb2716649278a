#include "pipewright/exec/rank/step_result.hpp"

#include <ATen/ATen.h>

#include <cmath>

namespace pipewright::exec {

std::vector<MicrobatchLoss> shared_losses(const Members& members,
                                          const std::vector<MicrobatchLoss>& own) {
  const at::Tensor known = at::empty({static_cast<std::int64_t>(own.size()), 2}, at::kDouble);
  double* next = known.mutable_data_ptr<double>();
  for (const auto& [loss, weight, is_known] : own) {
    *next++ = loss;
    *next++ = weight;
  }
  at::Tensor all = at::zeros_like(known);
  for (const Tensors& theirs : members.all_gather({known}))
    all += theirs.at(0);
  std::vector<MicrobatchLoss> losses;
  const auto rows = all.accessor<double, 2>();
  for (std::int64_t m = 0; m < rows.size(0); ++m)
    losses.push_back({rows[m][0], rows[m][1], true});
  return losses;
}

GradientUse use_and_tell(const TrainingSetup& setup, double loss_scale, const GradientNorm& norm,
                         StepResult& result) {
  const at::Tensor scaled = norm.norm();
  result.gradient_norm = scaled.item<double>() / loss_scale;
  result.skipped = !std::isfinite(result.gradient_norm);
  return use_of_gradients(setup, loss_scale, scaled);
}

}  // namespace pipewright::exec
