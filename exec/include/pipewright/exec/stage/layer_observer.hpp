#pragma once

// Observes a stage layer by layer. A profiler uses it to time each layer's part of an instruction.

#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::exec {

class LayerObserver {
 public:
  virtual ~LayerObserver() = default;
  /// Called when a layer's part of an instruction begins and ends. `layer` is its index in the
  /// model; the loss has the index after the last layer. If a backward recomputes layers, `part` is
  /// a Recompute for them. A layer from which no gradient reaches the stage's input has no part in
  /// an I. A Load is part of the first layer for inputs, and of the loss for targets.
  virtual void begin(const plan::Instruction& part, int layer) = 0;
  virtual void end(const plan::Instruction& part, int layer) = 0;
};

/// Runs a layer's part of an instruction, and notifies the observer if there is one.
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
