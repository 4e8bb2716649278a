#pragma once

// Trains with a plan.

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/rank/serial.hpp"
#include "pipewright/loop/predict/plan.hpp"
#include "pipewright/loop_torch/kernel_steps.hpp"
#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/loop_torch/permanent_straggler.hpp"
#include "pipewright/loop_torch/recorder.hpp"
#include "pipewright/loop_torch/resume.hpp"
#include "pipewright/loop_torch/workload.hpp"

namespace pipewright::loop {

struct CheckpointSettings {
  std::filesystem::path folder;  // empty disables checkpoints
  int every = 0;                 // steps between checkpoints; 0: only at the end
  /// Mean time between failures, as an alternative to `every`. The first checkpoint is taken after
  /// the third step and waited for. The interval with the least expected loss follows from its
  /// duration and that of the steps (plan/cluster/goodput.hpp). 0: use `every`.
  plan::Seconds between_failures{0};
  int keep = 2;         // number of newest checkpoints to keep
  bool resume = false;  // resume from the newest checkpoint, if there is one
};

/// The result of a step, for progress reports.
struct TrainedStep {
  int step = 0;
  const exec::StepResult& result;
  const StepRecord& record;  // only the ranks in this process
  double learning_rate = 0;
  /// Loss on data.evaluation, if this step has an evaluation.
  std::optional<double> evaluation_loss{};
  /// The slow ranks of all processes; empty if there are none.
  std::string slow{};
};

struct TrainingOptions {
  bool verified = false;  // return the final parameters, for `verify`
  CheckpointSettings checkpoints{};
  std::function<void(int step)> before_step{};  // called before each step
  /// Called by the first process after each step.
  std::function<void(const TrainedStep& step)> after_step{};
  Say say{};
  profiler::ActivitySource* kernels = nullptr;  // records every other step of a single pipeline
  /// The action if this process's rank is persistently slow.
  SlowPlace slow_place = SlowPlace::Stays;
  const std::atomic<bool>* stop = nullptr;  // may be set by any thread; the training ends early
  /// Called on another thread if all ranks are threads of this process, some of them wait, and for
  /// `stall` none has started anything new. Only terminating the process ends such a hang.
  std::function<void(const std::string& why)> give_up{};
  std::chrono::milliseconds stall = exec::JobOptions{}.stall;
};

struct TrainingOutcome {
  int first_step = 0;          // 0, or the step after the checkpoint it resumed from
  std::vector<double> losses;  // by step, from first_step on
  /// Losses on data.evaluation, by the step before the evaluation.
  std::map<int, double> evaluations;
  exec::LayerTensors parameters;       // and buffers; in a job, on the first rank only
  std::vector<int> gradient_groups;    // the summation order of gradients
  std::vector<StepRecord> steps;       // of this process's ranks; the newest 256 steps
  std::optional<StepKernels> kernels;  // of the last recorded step, if requested
  bool interrupted = false;
  double units_per_s = 0;  // from the duration of the typical step

  /// Number of steps at the start that are left out of the figures because caches are cold.
  std::size_t warm_up() const { return std::min<std::size_t>(2, steps.size() - 1); }
};

/// Trains with the plan, with one thread per rank of this process. Throws exec::RankFailure or
/// exec::Aborted, and SlowRankEnds if this process's rank gives up its place.
TrainingOutcome train(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                      Membership& members, const TrainingOptions& options = {});

}  // namespace pipewright::loop
