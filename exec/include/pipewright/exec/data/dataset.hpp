#pragma once

// Where microbatches come from: a pure function of step and microbatch, so that any rank can fetch
// its part by itself, and two runs read the same.

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// Microbatches are counted over the whole batch: replica 1 of two with 4 each reads 4 to 7. All
/// functions are safe to call from several threads.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// The first stage's input. Where it is several tensors, override `inputs`.
  virtual at::Tensor input(int step, int microbatch) const;
  /// What the last stage's loss compares with.
  virtual at::Tensor target(int step, int microbatch) const;
  virtual Tensors inputs(int step, int microbatch) const { return {input(step, microbatch)}; }
  virtual Tensors targets(int step, int microbatch) const { return {target(step, microbatch)}; }
};

struct BatchShape {
  int microbatches = 1;     // of a step
  int microbatch_size = 1;  // samples
  int seed = 0;
};

}  // namespace pipewright::exec
