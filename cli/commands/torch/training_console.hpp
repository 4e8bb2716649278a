#pragma once

// The common part of `run` and `train`: converts their options to settings of the loop, and prints
// their progress.

#include <functional>
#include <optional>

#include "commands/torch/training_progress.hpp"
#include "options/torch_options.hpp"
#include "pipewright/loop_torch/prepared.hpp"
#include "pipewright/loop_torch/training.hpp"
#include "pipewright/loop_torch/verify.hpp"

namespace pipewright::cli {

class TrainingConsole {
 public:
  explicit TrainingConsole(const RunOptions& options) : options_(options) {}

  // Settings of the loop, which call back to this object.
  loop::PrepareOptions prepare(const plan::Scenario& scenario);
  loop::TrainingOptions training();
  /// Shows the plan. `prepared` must outlive the training.
  void planned(const loop::Prepared& prepared);
  void serial_step(int step, const exec::StepResult& result);

 private:
  const RunOptions& options_;
  const loop::Prepared* prepared_ = nullptr;
  std::optional<TrainingProgress> training_, serial_;
};

/// Reads a scenario and rejects one that cannot be trained. Then runs `part` as a member of a
/// launcher's job, or alone; with `--processes` it starts one process per rank instead. Returns the
/// exit code.
int as_job(const RunOptions& options,
           const std::function<int(const plan::Scenario&, loop::Membership&)>& part);

}  // namespace pipewright::cli
