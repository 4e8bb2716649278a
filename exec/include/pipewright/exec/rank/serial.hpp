#pragma once

// The reference for every run: the same training without a pipeline.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/exec/rank/executor.hpp"

namespace pipewright::exec {

/// Tensors by layer and name.
using LayerTensors = std::map<std::pair<int, std::string>, at::Tensor>;

/// Trains without a pipeline: the reference that a pipelined run must equal bit for bit. One thread
/// runs the microbatches of a step one after the other, each as one autograd graph over the whole
/// model, and accumulates their gradients.
class SerialTrainer {
 public:
  /// `microbatches`: in the whole batch. `groups`: the gradient group of each microbatch; empty:
  /// one group.
  SerialTrainer(const TrainingSetup& setup, int microbatches, std::vector<int> groups = {},
                const RankDevice& device = {});
  ~SerialTrainer();

  StepResult step(int step);
  Evaluation evaluate(const Dataset& data, int microbatches, int step);
  /// Returns the parameters in the order of layers.
  std::vector<at::Tensor> parameters() const;
  LayerTensors named_parameters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pipewright::exec
