#pragma once

// What the ranks of a plan compute, played through between the steps of its training: without
// transfers, and with layers of its own. Shards pass on what they have, as that is a part of their
// actions. The simulator puts in what is left out, the waiting; so a prediction comes from the same
// minutes as what it is compared with.

#include <chrono>
#include <memory>
#include <vector>

#include "pipewright/loop/predict/plan.hpp"
#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/loop_torch/workload.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/sections/rehearsal.hpp"

namespace pipewright::loop {

/// Whether a rehearsal does what the training does: it knows CPUs alone.
bool can_rehearse(const plan::Program& program, const Workload& workload);

/// What was played of a rank.
struct RehearsedRank {
  std::vector<std::vector<double>> plays;      // each: seconds of every instruction of its script
  std::vector<profiler::LayerSamples> alone;   // by layer, the loss last: while no other computed
  std::vector<profiler::LayerSamples> beside;  // while all did
  std::vector<std::vector<double>> shards{};   // of the plays' seconds, those among its shards
  std::vector<std::vector<double>> late{};     // and of these, those waiting for one that was late
  using Plays = std::vector<std::vector<double>> RehearsedRank::*;
};

/// What was played of all.
struct Rehearsed {
  std::vector<RehearsedRank> ranks;  // of the job
  plan::Seconds over;                // from the first play to the end of the last
};

/// By play: `of` all events of a pipeline.
std::vector<std::vector<double>> plays_of(const Rehearsed& rehearsed,
                                          const plan::Pipeline& pipeline, RehearsedRank::Plays of,
                                          int replica = 0);

class DressRehearsal {
 public:
  /// Rehearses the ranks of this process. All must outlive it.
  DressRehearsal(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                 Membership& members);

  /// Plays a step of all ranks at once; every few times one rank's alone as well. All processes of
  /// the job call it together.
  void play();

  int played() const { return played_; }
  /// All processes call it; the first has the answer, the others have nothing.
  Rehearsed rehearsed() const;

 private:
  void meet();
  void play_together(bool counts);

  Membership& members_;
  int job_ranks_;
  std::shared_ptr<exec::Transport> transport_;                  // between shards
  std::vector<std::unique_ptr<profiler::LayerBench>> benches_;  // of the ranks here
  std::vector<exec::JobRank> job_rank_of_;                      // by bench
  std::vector<profiler::Rehearsal> rehearsals_;
  profiler::Cores cores_;
  std::vector<RehearsedRank> ranks_;
  int played_ = 0;
  std::chrono::steady_clock::time_point begin_;
  plan::Seconds over_;
};

/// The costs that were planned with, their times replaced by those that were found.
plan::LayerCosts costs_of(const Rehearsed& rehearsed, const plan::Scenario& scenario,
                          const Plan& plan, plan::LayerCosts planned);
/// A step's costs for each time that it was played: its actions as long as they were then, on each
/// of the pipelines side by side.
std::vector<sim::StepCosts> step_costs_of(const Rehearsed& rehearsed,
                                          const plan::Scenario& scenario, const Plan& plan,
                                          const plan::LayerCosts& costs);

/// The costs with factors that make each event as long as `seconds` says; 0: as it is. One list for
/// all pipelines, or one after the other a list for each.
sim::StepCosts with_measured(const sim::Structure& structure, sim::StepCosts costs,
                             const std::vector<double>& seconds);

}  // namespace pipewright::loop
