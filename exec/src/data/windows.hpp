#pragma once

// Samples of one long row of numbers: windows of it.

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// Windows of `sequence` numbers, which begin anywhere, drawn by seed, step, microbatch and sample,
/// or lie one behind the other and come each once in an epoch; the target is the window one number
/// later. Both are int64 [microbatch_size, sequence].
class Windows final : public Dataset {
 public:
  /// `numbers`: one dimension, more than `sequence`.
  Windows(at::Tensor numbers, int sequence, const BatchShape& shape)
      : numbers_(std::move(numbers)), sequence_(sequence), shape_(shape) {}

  at::Tensor input(int step, int microbatch) const override {
    return windows(step, microbatch, /*shift=*/0);
  }
  at::Tensor target(int step, int microbatch) const override {
    return windows(step, microbatch, /*shift=*/1);
  }

 private:
  std::int64_t begin_of(int step, int microbatch, int sample) const;
  at::Tensor windows(int step, int microbatch, int shift) const;

  at::Tensor numbers_;
  int sequence_;
  BatchShape shape_;
};

}  // namespace pipewright::exec
