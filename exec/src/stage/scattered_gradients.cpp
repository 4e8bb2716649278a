#include "scattered_gradients.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

namespace pipewright::exec {

ScatteredGradients::ScatteredGradients(std::vector<at::Tensor> parameters, Tensors sums,
                                       std::vector<int> microbatches, bool exact,
                                       const GradientSources& sources)
    : leaves_(std::move(parameters)), sum_(std::move(microbatches), std::move(sums), exact) {
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

void ScatteredGradients::add(int microbatch, const Tensors& shard) {
  const at::NoGradGuard no_grad;
  sum_.add(microbatch, shard, OrderedSum::Memory::IsReused);
}

void ScatteredGradients::finish() { sum_.restart(); }

}  // namespace pipewright::exec
