#pragma once

// Interface to observe how a stage runs an instruction layer by layer. A profiler uses it to time
// each layer.

#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::exec {

class LayerObserver {
 public:
  virtual ~LayerObserver() = default;
  /// Called before and after a layer does its part of an instruction. `layer` is its index in the
  /// model; the loss has the index after the last layer. `part` is the instruction, except that its
  /// kind is Recompute while a backward recomputes layers. Layers whose input has no gradient, such
  /// as the model's first one, are not reported for an I. A Load of inputs is reported
  /// for the stage's first layer, and a Load of targets for the loss.
  virtual void begin(const plan::Instruction& part, int layer) = 0;
  virtual void end(const plan::Instruction& part, int layer) = 0;
};

/// Runs `work`, a layer's part of the instruction `i`. Reports it to the observer, if there is one,
/// as an instruction of kind `part`.
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
