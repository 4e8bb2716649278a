#pragma once

// A sum of squares that has the same bits in whatever parts and order its numbers come, so that
// each rank adds up what it has. Squares are rounded to multiples of fixed powers of two, the bins,
// from the largest square's downwards; of so few bits a sum is exact (Demmel and Nguyen, "Parallel
// Reproducible Summation", IEEE Transactions on Computers 64, 2015).

#include <cstdint>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

class SquareSum {
 public:
  /// Of any sizes and floating-point types, on one device. Exact for up to 2³⁴ numbers in all.
  void add(const Tensors& values);
  /// What has been added so far, float64 [bins]: sums of these are those of all that was added.
  const at::Tensor& bins() const { return bins_; }
  void add_bins(const at::Tensor& others);

  /// A tensor without dimensions, float64; NaN where a number is not finite. A square counts to
  /// 2⁻⁶⁰ of the largest one.
  at::Tensor total() const;

 private:
  void add_chunk(const Tensors& flat);

  at::Tensor bins_;     // undefined: nothing has been added
  at::Tensor anchors_;  // by bin: 1.5 · 2⁵² of its units
};

}  // namespace pipewright::exec
