#pragma once

// Verifies that a training is bit-identical to the same training without a pipeline.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipewright/loop_torch/training.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::loop {

/// The counts of compared and of equal values.
struct Verification {
  std::size_t steps = 0;
  std::size_t equal_losses = 0;
  std::size_t tensors = 0;
  std::size_t equal_tensors = 0;
  std::int64_t parameters = 0;  // number of parameter elements compared
  std::string first_difference;
  bool bit_identical() const { return equal_losses == steps && equal_tensors == tensors; }
};

/// Returns true if the training has an equivalent without a pipeline. It has none if weights are
/// updated without a flush.
bool can_verify(const plan::Program& program);

/// The results of training without a pipeline, from the initial weights.
struct SerialOutcome {
  std::vector<double> losses;  // by step
  exec::LayerTensors parameters;
};
/// Called after each step.
using StepReport = std::function<void(int step, const exec::StepResult& result)>;
/// Trains without a pipeline. `gradient_groups` gives the gradient group of each microbatch, and
/// its size is the number of microbatches per step. Throws Stopped once `stop` is set; it may be
/// null.
SerialOutcome train_serially(const Workload& workload, const std::vector<int>& gradient_groups,
                             int steps, const std::atomic<bool>* stop = nullptr,
                             const StepReport& report = {});
/// Compares every loss and every final parameter of the same layer and name bit by bit. Buffers are
/// not compared, because each data-parallel replica has the running means of its own microbatches.
Verification compare(const TrainingOutcome& pipelined, const SerialOutcome& serial);
/// Trains the same steps without a pipeline and compares. Throws Stopped.
Verification verify(const Workload& workload, const TrainingOutcome& pipelined,
                    const std::atomic<bool>* stop = nullptr, const StepReport& report = {});

/// Returns one or two lines that say what was compared.
std::string to_string(const Verification& verification);
plan::Json to_json(const Verification& verification);

}  // namespace pipewright::loop
