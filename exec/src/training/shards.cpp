#include "pipewright/exec/training/shards.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace pipewright::exec {

/// Returns where the parameter is cut if an even division would cut it at `wanted`. Kernels round
/// the numbers after the last whole vector differently from those in vectors, so each number must
/// keep its place in a vector: cuts lie at multiples of all vectors' lengths.
std::int64_t ShardsOf::cut_at(std::int64_t wanted, const Parameter& parameter) {
  if (wanted >= parameter.numbers)
    return parameter.numbers;
  if (!parameter.is_contiguous)  // cannot be cut
    return 2 * wanted < parameter.numbers ? 0 : parameter.numbers;
  return std::max(wanted - wanted % longest_vector, std::int64_t{0});
}

at::Tensor Slice::of(const at::Tensor& tensor) const {
  if (end - begin == tensor.numel())
    return tensor;
  return tensor.detach().view(-1).narrow(0, begin, end - begin);
}

ShardsOf::ShardsOf(const std::vector<at::Tensor>& parameters, int count) : count_(count) {
  for (const at::Tensor& parameter : parameters) {
    parameters_.push_back({parameter.numel(), parameter.is_contiguous()});
    all_ += parameter.numel();
  }
}

std::vector<Slice> ShardsOf::of(int shard) const {
  const std::int64_t first = all_ * shard / count_, last = all_ * (shard + 1) / count_;
  std::vector<Slice> slices;
  std::int64_t at = 0;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const Slice slice{p, cut_at(first - at, parameters_[p]), cut_at(last - at, parameters_[p])};
    if (slice.begin < slice.end || count_ == 1)
      slices.push_back(slice);
    at += parameters_[p].numbers;
  }
  return slices;
}

CopiedParameters::CopiedParameters(std::vector<at::Tensor> parameters, std::vector<bool> of_experts)
    : parameters_(std::move(parameters)), of_experts_(std::move(of_experts)) {}

std::vector<std::size_t> CopiedParameters::with(CopiesOf copies) const {
  std::vector<std::size_t> chosen;
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (is_of_experts(p) == (copies == CopiesOf::Experts))
      chosen.push_back(p);
  return chosen;
}

std::vector<Slice> CopiedParameters::slices(CopiesOf copies, ReplicaIndex seat) const {
  const auto chosen = with(copies);
  std::vector<at::Tensor> parameters;
  for (const std::size_t p : chosen)
    parameters.push_back(parameters_[p]);
  auto slices = ShardsOf(parameters, seat.count).of(seat.index);
  for (Slice& slice : slices)
    slice.parameter = chosen[slice.parameter];
  return slices;
}

std::vector<Slice> CopiedParameters::slices(ReplicaIndex of_rest, ReplicaIndex of_experts) const {
  auto all = slices(CopiesOf::Rest, of_rest);
  const auto experts = slices(CopiesOf::Experts, of_experts);
  all.insert(all.end(), experts.begin(), experts.end());
  std::sort(all.begin(), all.end(),
            [](const Slice& a, const Slice& b) { return a.parameter < b.parameter; });
  return all;
}

}  // namespace pipewright::exec
