#pragma once

// Samples of one long row of numbers: windows that begin anywhere in it.

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// Windows of `sequence` numbers, drawn by seed, step, microbatch and sample; the target is the
/// window one number later. Both are int64 [microbatch_size, sequence].
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
  at::Tensor windows(int step, int microbatch, int shift) const;

  at::Tensor numbers_;
  int sequence_;
  BatchShape shape_;
};

}  // namespace pipewright::exec
