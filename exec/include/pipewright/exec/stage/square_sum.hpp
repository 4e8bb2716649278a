#pragma once

// A sum of squares, for the gradient norm, that has the same bits however its numbers are
// partitioned among ranks and ordered. Each square is split into a few pieces, which are multiples
// of fixed powers of two (the units of the bins), from the bin of the largest square downwards. The
// pieces of a bin have so few bits that their sum is exact in any order (Demmel and Nguyen,
// "Parallel Reproducible Summation", IEEE Transactions on Computers 64, 2015).

#include <cstdint>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

class SquareSum {
 public:
  /// Adds tensors of any sizes and floating-point types, on one device. Exact for up to 2³⁴ numbers
  /// in total.
  void add(const Tensors& values);
  /// Returns the sums of the bins so far, as a float64 tensor [bins]. It is undefined until
  /// something is added. The sum of several ranks' tensors is the tensor of all their numbers.
  const at::Tensor& bins() const { return bins_; }
  /// Adds the `bins` of another rank.
  void add_bins(const at::Tensor& others);

  /// Returns the sum of all squares, as a zero-dimensional float64 tensor; NaN if a number is not
  /// finite. The rounding error of each square is at most 2⁻⁶⁰ of the largest one.
  at::Tensor total() const;

 private:
  void add_chunk(const Tensors& flat);

  at::Tensor bins_;     // undefined until something is added
  at::Tensor anchors_;  // by bin: 1.5 · 2⁵² units; adding and subtracting it rounds to units
};

}  // namespace pipewright::exec
