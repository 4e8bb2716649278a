#pragma once

// Gradients that are reduce-scattered over a stage's data-parallel replicas after each microbatch
// (ZeRO stages 2 and 3). Whole gradients exist from the start of a backward until that reduction;
// what stays is the sum over microbatches of this rank's shard. In exact mode microbatches are
// added in their order, and the shard of one that comes too early is set aside.

#include <vector>

#include "gradient_sources.hpp"
#include "ordered_sum.hpp"
#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

class ScatteredGradients {
 public:
  /// `sums` are the zeroed slices of the shard, to which gradients are added. `microbatches` lists
  /// those that this rank computes, in their order.
  ScatteredGradients(std::vector<at::Tensor> parameters, Tensors sums,
                     std::vector<int> microbatches, bool exact,
                     const GradientSources& sources = {});

  /// Call right before and right after work that adds a microbatch's gradients to `.grad`.
  void begin();
  void end();
  /// Returns these gradients and gives up all references to them.
  Tensors take();
  /// Returns the indices of a parameter's gradients in that list: one, or for an expert's parameter
  /// one for each pipeline, in order.
  const std::vector<std::size_t>& gradients_of(std::size_t parameter) const {
    return leaves_of_[parameter];
  }
  /// Adds the sum over all replicas of a microbatch, and of the microbatches that the other
  /// replicas computed at the same place. The memory of `shard` may be reused afterwards.
  void add(int microbatch, const Tensors& shard);
  /// Resets for the next step.
  void finish();

 private:
  std::vector<at::Tensor> leaves_;                   // parameters, followed by their aliases
  std::vector<std::vector<std::size_t>> leaves_of_;  // by parameter
  OrderedSum sum_;
  Tensors whole_;
};

}  // namespace pipewright::exec
