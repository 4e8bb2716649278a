// Synthetic microbatches that are functions of step and microbatch.
#pragma once

#include <ATen/ATen.h>

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::test {

/// A dataset whose input is float32 [3, 4] followed by some extra tensors, and whose target is [3,
/// 2].
class SyntheticData final : public exec::Dataset {
 public:
  /// `lengths_differ`: microbatch m has 3 + m rows.
  explicit SyntheticData(exec::Tensors extra_inputs = {}, bool lengths_differ = false)
      : extra_inputs_(std::move(extra_inputs)), lengths_differ_(lengths_differ) {}

  exec::Tensors inputs(int step, int microbatch) const override {
    exec::Tensors all{wave(4, step, microbatch)};
    all.insert(all.end(), extra_inputs_.begin(), extra_inputs_.end());
    return all;
  }
  exec::Tensors targets(int step, int microbatch) const override {
    return {wave(2, step + 7, microbatch)};
  }

 private:
  at::Tensor wave(int columns, int step, int microbatch) const {
    const int rows = lengths_differ_ ? 3 + microbatch : 3;
    return (at::arange(rows * columns, at::kFloat) * 0.7 + step * 1.3 + microbatch * 2.1)
        .sin()
        .view({rows, columns});
  }

  exec::Tensors extra_inputs_;
  bool lengths_differ_;
};

}  // namespace pipewright::test
