#include "pipewright/exec/stage/losses.hpp"

#include <ATen/ATen.h>

namespace pipewright::exec {

double mean_loss(const std::vector<MicrobatchLoss>& losses) {
  double sum = 0;
  for (const MicrobatchLoss& own : losses)
    sum += own.loss * own.weight;
  return sum / static_cast<double>(losses.size());
}

void Losses::begin(int microbatches) {
  losses_.assign(static_cast<std::size_t>(microbatches), {});
  gradient_.reset();
}

void Losses::add(int microbatch, const at::Tensor& loss, double weight, bool copies) {
  const auto at = static_cast<std::size_t>(microbatch);
  losses_[at] = {loss.is_cpu() ? loss.item<double>() : 0, weight, true};
  if (!loss.is_cpu())
    unread_.emplace_back(at, copies ? loss.detach().clone() : loss.detach());
}

at::Tensor Losses::gradient(const at::Tensor& loss, double scale, double weight) {
  if (!gradient_.defined())
    gradient_ = at::full_like(loss, scale);
  return weight == 1 ? gradient_ : gradient_ * weight;
}

void Losses::read() {
  for (const auto& [microbatch, loss] : unread_)
    losses_[microbatch].loss = loss.item<double>();
  unread_.clear();
}

}  // namespace pipewright::exec
