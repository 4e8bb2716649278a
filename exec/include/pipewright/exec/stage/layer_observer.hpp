#pragma once

// Whoever watches a stage layer by layer: a profiler, which asks how long each layer takes of what
// the stage does.

#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::exec {

class LayerObserver {
 public:
  virtual ~LayerObserver() = default;
  /// A layer's part of an instruction begins, and ends. `layer` counts over the model; the loss is
  /// the layer behind the last. Where a backward runs layers again, `part` says that they are a
  /// Recompute. A layer without a way to its input has no part in an I. A Load is the part of the
  /// first layer for inputs, and of the loss for targets.
  virtual void begin(const plan::Instruction& part, int layer) = 0;
  virtual void end(const plan::Instruction& part, int layer) = 0;
};

/// Does a layer's part of an instruction, and tells the observer, where there is one.
template <class Work>
void observed(LayerObserver* observer, const plan::Instruction& i, plan::InstructionKind part,
              int layer, const Work& work) {
  if (observer == nullptr)
    return work();
  const plan::Instruction own{part, i.stage, i.microbatch, i.slot};
  observer->begin(own, layer);
  work();
  observer->end(own, layer);
}

}  // namespace pipewright::exec
