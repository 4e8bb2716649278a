#pragma once

// The training loop of `run` and `train`.

#include <functional>
#include <string>
#include <vector>

#include "membership.hpp"
#include "planning.hpp"
#include "recorder.hpp"
#include "workload.hpp"

namespace pipewright::cli {

struct CheckpointSettings {
  std::filesystem::path folder;  // empty: no checkpoints
  int every = 0;                 // steps between them; 0: at the end alone
  int keep = 2;                  // newest ones
  bool resume = false;           // go on from the newest one, if there is any
};

/// Whether loss and rate are shown on stderr while it goes on.
enum class Talk { Progress, Silent };

struct TrainingWishes {
  bool verified = false;  // parameters are handed out, for `verify`
  CheckpointSettings checkpoints{};
  Talk talk = Talk::Progress;
  std::function<void(int step)> before_step{};  // what else is to be done in between
};

struct TrainingOutcome {
  int first_step = 0;                  // after those before the checkpoint that was resumed from
  std::vector<double> losses;          // by step from there
  std::vector<at::Tensor> parameters;  // in the order of layers; in a job, on the first rank alone
  std::vector<int> gradient_groups;    // in which order gradients were added up
  std::vector<StepRecord> steps;       // of this process's ranks
  bool interrupted = false;
  double units_per_s = 0;  // at the typical step's pace

  /// Steps that warm caches and are left out of the figures.
  std::size_t warm_up() const { return std::min<std::size_t>(2, steps.size() - 1); }
};

/// Trains by the plan: one thread per rank of this process. Throws exec::RankFailure or
/// exec::Aborted.
TrainingOutcome train(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                      Membership& members, const TrainingWishes& wishes = {});

/// The typical step as a timeline of all ranks, by one clock; empty but on the first process.
plan::Timeline measured_timeline(const TrainingOutcome& outcome, const Membership& members);

/// Whether the newest checkpoint can be loaded by this plan; prints the answer.
bool can_resume(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                const std::filesystem::path& folder);

/// What `--verify` found.
struct Verification {
  std::size_t steps = 0;
  std::size_t equal_losses = 0;
  std::size_t tensors = 0;
  std::size_t equal_tensors = 0;
  std::int64_t parameters = 0;  // numbers compared
  std::string first_difference;
  bool bit_identical() const { return equal_losses == steps && equal_tensors == tensors; }
};

/// Training without a pipeline, from the first weights.
struct SerialOutcome {
  std::vector<double> losses;          // by step
  std::vector<at::Tensor> parameters;  // in the order of layers
};
/// The microbatches of a step are as many as have a gradient group. Throws Stopped.
SerialOutcome train_serially(const plan::Scenario& scenario, const Workload& workload,
                             const std::vector<int>& gradient_groups, int steps,
                             Talk talk = Talk::Progress);
/// Compares every loss and every final parameter, bit for bit.
Verification compare(const TrainingOutcome& pipelined, const SerialOutcome& serial);
/// Trains the same steps without a pipeline, and compares. Throws Stopped.
Verification verify(const plan::Scenario& scenario, const Workload& workload,
                    const TrainingOutcome& pipelined);

/// Throws InputError for a schedule whose training is another than any without a pipeline.
void require_verifiable(const plan::Program& program, const plan::Scenario& scenario);

/// One or two lines that say what was compared.
std::string to_string(const Verification& verification);

}  // namespace pipewright::cli
