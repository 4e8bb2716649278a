#pragma once

// Rehearsals: the compute of all ranks of a plan, replayed between the steps of its training.
// Replaying one step is called a play. A rehearsal has its own layers and no pipeline transfers,
// but it includes the tensor-parallel communication, which is part of the actions. The simulator
// then adds the waiting. So the prediction and the measurement that it is compared with come from
// the same minutes.

#include <chrono>
#include <memory>
#include <vector>

#include "pipewright/loop/predict/plan.hpp"
#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/loop_torch/workload.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/sections/rehearsal.hpp"

namespace pipewright::loop {

/// Returns true if a rehearsal can reproduce what the training computes. Rehearsals support CPUs
/// only.
bool can_rehearse(const plan::Program& program, const Workload& workload);

/// The rehearsed times of one rank.
struct RehearsedRank {
  /// By play: seconds of every instruction of the rank's script.
  std::vector<std::vector<double>> plays;
  /// By layer, the loss last: while no other rank computed.
  std::vector<profiler::LayerSamples> alone;
  std::vector<profiler::LayerSamples> beside;  // the same while all ranks computed
  /// By play: the part spent in tensor-parallel communication.
  std::vector<std::vector<double>> shards{};
  /// By play: the part of that spent waiting for a late rank.
  std::vector<std::vector<double>> late{};
  using Plays = std::vector<std::vector<double>> RehearsedRank::*;
};

/// The rehearsed times of all ranks.
struct Rehearsed {
  std::vector<RehearsedRank> ranks;  // by rank of the job
  plan::Seconds over;                // from the start of the first play to the end of the last
};

/// Returns, by play, the times `of` all events of one pipeline.
std::vector<std::vector<double>> plays_of(const Rehearsed& rehearsed,
                                          const plan::Pipeline& pipeline, RehearsedRank::Plays of,
                                          int replica = 0);

class DressRehearsal {
 public:
  /// Rehearses the ranks of this process. All arguments must outlive it.
  DressRehearsal(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                 Membership& members);

  /// Rehearses one step on all ranks at once, and in every fourth call also on a single rank alone.
  /// Collective over all processes of the job.
  void play();

  int played() const { return played_; }
  /// Gathers the times of all ranks. Collective; only the first process gets the result.
  Rehearsed rehearsed() const;

 private:
  void meet();
  void play_together(bool counts);

  Membership& members_;
  int job_ranks_;
  std::shared_ptr<exec::Transport> transport_;                  // between tensor-parallel ranks
  std::vector<std::unique_ptr<profiler::LayerBench>> benches_;  // of the ranks in this process
  std::vector<exec::JobRank> job_rank_of_;                      // by bench
  std::vector<profiler::Rehearsal> rehearsals_;
  profiler::Cores cores_;
  std::vector<RehearsedRank> ranks_;
  int played_ = 0;
  std::chrono::steady_clock::time_point begin_;
  plan::Seconds over_;
};

/// Returns the planned costs with their times replaced by the rehearsed ones.
plan::LayerCosts costs_of(const Rehearsed& rehearsed, const plan::Scenario& scenario,
                          const Plan& plan, plan::LayerCosts planned);
/// Returns the costs of one step for each play, with the durations that its actions had in that
/// play, for each data-parallel replica.
std::vector<sim::StepCosts> step_costs_of(const Rehearsed& rehearsed,
                                          const plan::Scenario& scenario, const Plan& plan,
                                          const plan::LayerCosts& costs);

/// Returns the costs with factors that make each event take `seconds`; 0 keeps the duration from
/// the costs. `seconds` is one list for all pipelines, or the concatenated lists of every pipeline.
sim::StepCosts with_measured(const sim::Structure& structure, sim::StepCosts costs,
                             const std::vector<double>& seconds);

}  // namespace pipewright::loop
