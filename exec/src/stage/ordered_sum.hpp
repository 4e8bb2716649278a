#pragma once

// Adds gradients in the order of microbatches, on which the bits of a floating-point sum depend. If
// a schedule computes them in another order, those that come too early are set aside.

#include <map>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

class OrderedSum {
 public:
  /// `microbatches` lists those that will be added, in their order. `sums` are zeroed. Without
  /// `exact`, gradients are added in the order of arrival.
  OrderedSum(std::vector<int> microbatches, Tensors sums, bool exact);

  bool comes_next(int microbatch) const { return !exact_ || microbatches_[added_] == microbatch; }
  /// `IsReused`: gradients that are set aside are copied, because their memory will be overwritten.
  enum class Memory { Stays, IsReused };
  /// Adds those gradients of a microbatch that are defined.
  void add(int microbatch, const Tensors& gradients, Memory memory);
  /// Call after the gradients of the next microbatch in the order were added to `sums` directly.
  void was_added();
  /// Begins the next step.
  void restart();
  const Tensors& sums() const { return sums_; }

 private:
  std::vector<int> microbatches_;
  Tensors sums_;
  bool exact_;
  std::size_t added_ = 0;
  std::map<int, Tensors> aside_;  // by microbatch
};

}  // namespace pipewright::exec
