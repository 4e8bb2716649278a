#pragma once

// What `run` and `train` have in common: how their options become settings of the loop, and what
// they say while it goes on.

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

  // Settings of the loop, which call this object back.
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

/// Reads a scenario that is to be trained, and refuses what cannot be; then runs `part` as a member
/// of the job that a launcher started, or alone, or has `--processes` start one process per rank.
/// Gives the exit code.
int as_job(const RunOptions& options,
           const std::function<int(const plan::Scenario&, loop::Membership&)>& part);

}  // namespace pipewright::cli
