#pragma once

// Gradients that are summed over the copies of a stage microbatch by microbatch (ZeRO stages 2 and
// 3). Whole they stand from when a backward begins until that sum is made; what stays is the sum
// over microbatches of this copy's shard. In exact mode microbatches are added in their order, and
// the shard of one that comes too early is set aside.

#include <vector>

#include "gradient_sources.hpp"
#include "ordered_sum.hpp"
#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

class ScatteredGradients {
 public:
  /// `sums`: zeroed, of the shard's slices; they are what is added to. `microbatches`: those that
  /// will be computed here, in their order.
  ScatteredGradients(std::vector<at::Tensor> parameters, Tensors sums,
                     std::vector<int> microbatches, bool exact,
                     const GradientSources& sources = {});

  /// Call right before and right after what adds the gradients of a microbatch to `.grad`.
  void begin();
  void end();
  /// Those gradients: the caller's alone from here on.
  Tensors take();
  /// Which of them are a parameter's: one, or where pipelines share it out one of each, in order.
  const std::vector<std::size_t>& gradients_of(std::size_t parameter) const {
    return leaves_of_[parameter];
  }
  /// Adds what all copies have made of a microbatch, or of those that the other copies have in its
  /// place. `shard`: in memory that need not stay.
  void add(int microbatch, const Tensors& shard);
  /// Is ready for the next step.
  void finish();

 private:
  std::vector<at::Tensor> leaves_;                   // parameters, and their aliases behind them
  std::vector<std::vector<std::size_t>> leaves_of_;  // by parameter
  OrderedSum sum_;
  Tensors whole_;
};

}  // namespace pipewright::exec
