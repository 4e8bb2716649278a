#include "ordered_sum.hpp"

#include <ATen/ATen.h>

#include <utility>

namespace pipewright::exec {
namespace {

/// Adds all gradients in one call, which launches few kernels on a GPU.
void add_to(const Tensors& sums, const Tensors& gradients) {
  Tensors to, from;
  for (std::size_t p = 0; p < sums.size(); ++p)
    if (gradients[p].defined()) {
      to.push_back(sums[p]);
      from.push_back(gradients[p]);
    }
  if (!to.empty())
    at::_foreach_add_(to, from);
}

}  // namespace

OrderedSum::OrderedSum(std::vector<int> microbatches, Tensors sums, bool exact)
    : microbatches_(std::move(microbatches)), sums_(std::move(sums)), exact_(exact) {}

void OrderedSum::add(int microbatch, const Tensors& gradients, Memory memory) {
  if (comes_next(microbatch)) {
    add_to(sums_, gradients);
    return was_added();
  }
  Tensors& aside = aside_[microbatch] = gradients;
  for (at::Tensor& gradient : aside)
    if (memory == Memory::IsReused && gradient.defined())
      gradient = gradient.clone();
}

void OrderedSum::was_added() {
  while (++added_ < microbatches_.size()) {
    const auto next = aside_.find(microbatches_[added_]);
    if (next == aside_.end())
      return;
    add_to(sums_, next->second);
    aside_.erase(next);
  }
}

void OrderedSum::restart() {
  added_ = 0;
  aside_.clear();
}

}  // namespace pipewright::exec
