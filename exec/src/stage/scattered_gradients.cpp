#include "scattered_gradients.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

namespace pipewright::exec {

ScatteredGradients::ScatteredGradients(std::vector<at::Tensor> parameters, Tensors sums,
                                       std::vector<int> microbatches, bool exact,
                                       const GradientSources& sources)
    : leaves_(std::move(parameters)),
      sums_(std::move(sums)),
      microbatches_(std::move(microbatches)),
      exact_(exact) {
  for (std::size_t p = 0; p < leaves_.size(); ++p)
    leaves_of_.push_back({p});
  for (const GradientAlias& alias : sources.aliases) {
    leaves_of_[alias.parameter].push_back(leaves_.size());
    leaves_.push_back(alias.leaf);
  }
}

void ScatteredGradients::begin() {
  const at::NoGradGuard no_grad;
  for (at::Tensor& leaf : leaves_)
    leaf.mutable_grad() = at::zeros_like(leaf);
}

void ScatteredGradients::end() {
  for (at::Tensor& leaf : leaves_)
    whole_.push_back(std::exchange(leaf.mutable_grad(), at::Tensor()));
}

Tensors ScatteredGradients::take() { return std::exchange(whole_, {}); }

void ScatteredGradients::add_to_sums(const Tensors& shard) {
  if (!sums_.empty())
    at::_foreach_add_(sums_, shard);
}

void ScatteredGradients::add(int microbatch, const Tensors& shard) {
  const at::NoGradGuard no_grad;
  if (exact_ && microbatches_[added_] != microbatch) {
    for (const at::Tensor& slice : shard)
      aside_[microbatch].push_back(slice.clone());
    return;
  }
  add_to_sums(shard);
  ++added_;
  while (added_ < microbatches_.size()) {
    const auto next = aside_.find(microbatches_[added_]);
    if (next == aside_.end())
      return;
    add_to_sums(next->second);
    aside_.erase(next);
    ++added_;
  }
}

void ScatteredGradients::finish() {
  added_ = 0;
  aside_.clear();
}

}  // namespace pipewright::exec
