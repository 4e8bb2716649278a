#pragma once

// Samples that are windows of one long sequence of numbers.

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// Windows of `sequence` numbers. They begin anywhere, drawn by seed, step, microbatch and sample,
/// or are consecutive and occur once in an epoch. The target is the window shifted by one number.
/// Both are int64 [microbatch_size, sequence].
class Windows final : public Dataset {
 public:
  /// `numbers` has one dimension and more than `sequence` elements.
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
