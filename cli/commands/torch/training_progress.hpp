#pragma once

// Shows the progress of a training: a line that updates in place on a terminal, otherwise ten
// lines.

#include <chrono>
#include <optional>
#include <string>

#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/loop_torch/workload.hpp"
#include "print/console.hpp"

namespace pipewright::cli {

class TrainingProgress {
 public:
  TrainingProgress(std::string label, int steps, const loop::Workload& workload)
      : label_(std::move(label)), steps_(steps), workload_(workload) {}

  /// Starts the clock at the first call.
  void begin();
  void report(int step, const exec::StepResult& result, std::optional<double> evaluation_loss = {});

 private:
  std::string label_;
  int steps_;
  const loop::Workload& workload_;
  ProgressLine line_;
  double in_steps_ = 0;
  int steps_done_ = 0;
  std::optional<std::chrono::steady_clock::time_point> begin_;
};

}  // namespace pipewright::cli
