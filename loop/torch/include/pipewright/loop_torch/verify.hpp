#pragma once

// Whether a training had the bits of one without a pipeline.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipewright/loop_torch/training.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::loop {

/// What was compared, and found.
struct Verification {
  std::size_t steps = 0;
  std::size_t equal_losses = 0;
  std::size_t tensors = 0;
  std::size_t equal_tensors = 0;
  std::int64_t parameters = 0;  // numbers compared
  std::string first_difference;
  bool bit_identical() const { return equal_losses == steps && equal_tensors == tensors; }
};

/// Whether there is a training without a pipeline that this one has to equal: not where weights are
/// updated without a flush.
bool can_verify(const plan::Program& program);

/// Training without a pipeline, from the first weights.
struct SerialOutcome {
  std::vector<double> losses;          // by step
  std::vector<at::Tensor> parameters;  // in the order of layers
};
/// Called after each step.
using StepReport = std::function<void(int step, const exec::StepResult& result)>;
/// The microbatches of a step are as many as have a gradient group. Throws Stopped once `stop` is
/// set; null: never.
SerialOutcome train_serially(const Workload& workload, const std::vector<int>& gradient_groups,
                             int steps, const std::atomic<bool>* stop = nullptr,
                             const StepReport& report = {});
/// Compares every loss and every final parameter, bit for bit.
Verification compare(const TrainingOutcome& pipelined, const SerialOutcome& serial);
/// Trains the same steps without a pipeline, and compares. Throws Stopped.
Verification verify(const Workload& workload, const TrainingOutcome& pipelined,
                    const std::atomic<bool>* stop = nullptr, const StepReport& report = {});

/// One or two lines that say what was compared.
std::string to_string(const Verification& verification);
plan::Json to_json(const Verification& verification);

}  // namespace pipewright::loop
