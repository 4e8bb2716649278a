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
  /// An evaluation may have microbatches of its own size.
  void begin(bool training) { of_pass_ = training ? expected_ : Tensors(); }
  /// Throws InputError when a microbatch has other shapes and the stage's shapes are not dynamic.
  /// `what`: "input" or "output".
  void check(const StageSpec& stage, int microbatch, const char* what, const Tensors& tensors);

 private:
  Tensors expected_;
  Tensors of_pass_;  // meta tensors; empty: not known yet
};

}  // namespace pipewright::exec
