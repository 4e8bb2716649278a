#pragma once

// The types and sizes of the tensors on one boundary of a stage, which must not change from
// microbatch to microbatch.

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

struct StageSpec;

class BoundaryShapes {
 public:
  /// Sets the shapes of every pass that trains. Meta tensors suffice. Without this, the first
  /// microbatch of a pass sets them.
  void expect(const Tensors& tensors);
  /// Begins a pass. An evaluation may have microbatches of a different size, so its first
  /// microbatch sets the shapes.
  void begin(bool training) { of_pass_ = training ? expected_ : Tensors(); }
  /// Throws InputError if a microbatch has other shapes and the stage's shapes are not dynamic.
  /// `what` is "input" or "output".
  void check(const StageSpec& stage, int microbatch, const char* what, const Tensors& tensors);

 private:
  Tensors expected_;
  Tensors of_pass_;  // meta tensors; empty until they are known
};

}  // namespace pipewright::exec
