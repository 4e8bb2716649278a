#include "windows.hpp"

#include <ATen/ATen.h>

#include "pipewright/exec/hash.hpp"
#include "sample_order.hpp"

namespace pipewright::exec {

/// Leaves one number after the last window, for its target.
std::int64_t Windows::begin_of(int step, int microbatch, int sample) const {
  if (shape_.order == plan::SampleOrder::Shuffled)
    return sequence_ *
           sample_at(step, microbatch, sample, shape_, (numbers_.numel() - 1) / sequence_);
  const auto begins = static_cast<std::uint64_t>(numbers_.numel() - sequence_);
  return static_cast<std::int64_t>(hash_of({shape_.seed, step, microbatch, sample}) % begins);
}

at::Tensor Windows::windows(int step, int microbatch, int shift) const {
  std::vector<at::Tensor> windows;
  for (int sample = 0; sample < shape_.microbatch_size; ++sample)
    windows.push_back(
        numbers_.narrow(0, begin_of(step, microbatch, sample) + shift, sequence_).to(at::kLong));
  return at::stack(windows);
}

}  // namespace pipewright::exec
