#pragma once

// Training by a plan.

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/loop/predict/plan.hpp"
#include "pipewright/loop_torch/kernel_steps.hpp"
#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/loop_torch/recorder.hpp"
#include "pipewright/loop_torch/resume.hpp"
#include "pipewright/loop_torch/slow_for_good.hpp"
#include "pipewright/loop_torch/workload.hpp"

namespace pipewright::loop {

struct CheckpointSettings {
  std::filesystem::path folder;  // empty: no checkpoints
  int every = 0;                 // steps between them; 0: at the end alone
  /// Instead: the mean time between failures. The first checkpoint, after the third step, is waited
  /// for; from its time and the steps' follows how many steps lie between checkpoints that lose
  /// least (plan/cluster/goodput.hpp). 0: `every` says it.
  plan::Seconds between_failures{0};
  int keep = 2;         // newest ones
  bool resume = false;  // go on from the newest one, if there is any
};

/// What became of a step, for whoever looks on.
struct TrainedStep {
  int step = 0;
  const exec::StepResult& result;
  const StepRecord& record;  // of the ranks in this process
  double learning_rate = 0;
  std::optional<double> evaluation_loss{};  // of data.evaluation, where the step has one
  std::string slow{};                       // which ranks of all processes are; empty: none
};

struct TrainingOptions {
  bool verified = false;  // parameters are handed out, for `verify`
  CheckpointSettings checkpoints{};
  std::function<void(int step)> before_step{};  // what else is to be done in between
  /// Called by the first process after each step.
  std::function<void(const TrainedStep& step)> after_step{};
  Say say{};
  profiler::ActivitySource* kernels = nullptr;  // records every other step, of one pipeline
  SlowPlace slow_place = SlowPlace::Stays;      // of a process's rank
  const std::atomic<bool>* stop = nullptr;      // set from anywhere: the training ends early
  /// Called, on another thread, where all ranks are threads of this process and for `stall` none
  /// has begun anything new while some wait: only the end of the process ends what hangs.
  std::function<void(const std::string& why)> give_up{};
  std::chrono::milliseconds stall = exec::JobOptions{}.stall;
};

struct TrainingOutcome {
  int first_step = 0;                  // after those before the checkpoint that was resumed from
  std::vector<double> losses;          // by step from there
  std::map<int, double> evaluations;   // losses of data.evaluation, by the step that went before
  std::vector<at::Tensor> parameters;  // in the order of layers; in a job, on the first rank alone
  std::vector<int> gradient_groups;    // in which order gradients were added up
  std::vector<StepRecord> steps;       // of this process's ranks: the newest 256
  std::optional<StepKernels> kernels;  // of the last step that was recorded, where it was asked for
  bool interrupted = false;
  double units_per_s = 0;  // at the typical step's pace

  /// Steps that warm caches and are left out of the figures.
  std::size_t warm_up() const { return std::min<std::size_t>(2, steps.size() - 1); }
};

/// Trains by the plan: one thread per rank of this process. Throws exec::RankFailure or
/// exec::Aborted; SlowRankEnds where this process's rank makes room.
TrainingOutcome train(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                      Membership& members, const TrainingOptions& options = {});

}  // namespace pipewright::loop
