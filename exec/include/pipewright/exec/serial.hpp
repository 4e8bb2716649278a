#pragma once

#include <vector>

#include "pipewright/exec/executor.hpp"

namespace pipewright::exec {

/// Training without a pipeline: the reference that a pipelined run must equal bit for bit. One
/// thread runs the microbatches of a step one after the other and adds up their gradients.
class SerialTrainer {
 public:
  SerialTrainer(const TrainingSetup& setup, int microbatches);
  StepResult step(int step);
  std::vector<at::Tensor> parameters() const { return optimizer_->parameters(); }

 private:
  TrainingSetup setup_;
  int microbatches_;
  std::vector<std::shared_ptr<Layer>> layers_;
  std::unique_ptr<AdamW> optimizer_;
};

}  // namespace pipewright::exec
