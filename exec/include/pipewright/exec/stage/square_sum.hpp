#pragma once

// A sum of squares that has the same bits however its numbers are partitioned and ordered, so that
// each rank can sum its own. Squares are rounded to multiples of fixed powers of two, the bins,
// from the bin of the largest square downwards. Sums of numbers with so few bits are exact (Demmel
// and Nguyen, "Parallel Reproducible Summation", IEEE Transactions on Computers 64, 2015).

#include <cstdint>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

class SquareSum {
 public:
  /// Adds tensors of any sizes and floating-point types, on one device. Exact for up to 2³⁴ numbers
  /// in total.
  void add(const Tensors& values);
  /// Returns the sum so far, float64 [bins]. Bins of several ranks may be added to get the sum of
  /// all.
  const at::Tensor& bins() const { return bins_; }
  void add_bins(const at::Tensor& others);

  /// Returns a zero-dimensional float64 tensor; NaN if a number is not finite. Each square is
  /// precise to 2⁻⁶⁰ of the largest one.
  at::Tensor total() const;

 private:
  void add_chunk(const Tensors& flat);

  at::Tensor bins_;     // undefined until something is added
  at::Tensor anchors_;  // by bin: 1.5 · 2⁵² of its units
};

}  // namespace pipewright::exec
