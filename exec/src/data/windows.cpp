#include "windows.hpp"

#include <ATen/ATen.h>

#include "hash.hpp"

namespace pipewright::exec {

at::Tensor Windows::windows(int step, int microbatch, int shift) const {
  // The last window leaves one number for its target.
  const auto offsets = static_cast<std::uint64_t>(numbers_.numel() - sequence_);
  std::vector<at::Tensor> windows;
  for (int sample = 0; sample < shape_.microbatch_size; ++sample) {
    const std::uint64_t offset = hash_of({shape_.seed, step, microbatch, sample}) % offsets;
    windows.push_back(
        numbers_.narrow(0, static_cast<std::int64_t>(offset) + shift, sequence_).to(at::kLong));
  }
  return at::stack(windows);
}

}  // namespace pipewright::exec
