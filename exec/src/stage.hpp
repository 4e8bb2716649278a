#pragma once

// One stage on its rank: its layers, their optimizer, and the buffers of the microbatches under
// way.

#include <memory>
#include <vector>

#include "pipewright/exec/executor.hpp"

namespace pipewright::exec {

/// What a stage holds for one microbatch, from its first instruction to its last.
struct StageBuffers {
  at::Tensor input;            // leaf; its gradient is for the stage before
  at::Tensor target;           // last stage
  at::Tensor output;           // root of the graph: the output, or on the last stage the loss
  at::Tensor output_gradient;  // from the stage after; undefined on the last stage
  at::Tensor input_gradient;
};

class Stage {
 public:
  /// Layers [first, last) of the model. `slots`: buffers held at once.
  Stage(int first, int last, int slots, int microbatches, const TrainingSetup& setup);

  void load(const plan::Instruction& i, int step);
  void forward(const plan::Instruction& i, int step);
  void backward(const plan::Instruction& i);
  void input_gradient(const plan::Instruction& i);
  void weight_gradient(const plan::Instruction& i);
  void optimizer_step() { optimizer_->step(); }

  StageBuffers& buffers(const plan::Instruction& i) {
    return slots_[static_cast<std::size_t>(i.slot)];
  }
  /// What the stage after takes over: the output cut off its graph.
  at::Tensor output_for_next(const plan::Instruction& i) { return buffers(i).output.detach(); }
  /// What the stage before takes over.
  at::Tensor take_input_gradient(const plan::Instruction& i);

  const std::vector<at::Tensor>& parameters() const { return optimizer_->parameters(); }
  /// By microbatch; of the last stage, after its forwards.
  const std::vector<double>& losses() const { return losses_; }

 private:
  bool is_last() const { return last_ == static_cast<int>(setup_.layers.size()); }

  int first_, last_;
  int microbatches_;
  const TrainingSetup& setup_;
  std::vector<std::shared_ptr<Layer>> layers_;
  std::unique_ptr<AdamW> optimizer_;
  std::vector<StageBuffers> slots_;
  std::vector<double> losses_;
};

}  // namespace pipewright::exec
