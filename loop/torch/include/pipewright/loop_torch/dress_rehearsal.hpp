#pragma once

// What the ranks of a plan compute, played through between the steps of its training: without
// transfers, and with layers of its own. The simulator puts in what is left out, the waiting; so a
// prediction comes from the same minutes as what it is compared with.

#include <chrono>
#include <memory>
#include <vector>

#include "pipewright/loop/plan.hpp"
#include "pipewright/loop_torch/workload.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/rehearsal.hpp"

namespace pipewright::loop {

/// Whether a rehearsal does what the training does: it knows CPUs, and steps with a flush.
bool can_rehearse(const plan::Program& program, const Workload& workload);

class DressRehearsal {
 public:
  DressRehearsal(const plan::Scenario& scenario, const Plan& plan, const Workload& workload);

  /// Plays a step of all ranks at once; every few times one rank's alone as well.
  void play();

  int played() const { return static_cast<int>(plays_.size()); }
  /// The costs that were planned with, their times replaced by those found here.
  plan::LayerCosts costs(plan::LayerCosts planned) const;
  /// A step's costs for each time that it was played: its actions as long as they were then.
  std::vector<sim::StepCosts> step_costs(const plan::LayerCosts& costs) const;

 private:
  const plan::Scenario& scenario_;
  const Plan& plan_;
  std::vector<std::unique_ptr<profiler::LayerBench>> benches_;  // by rank
  std::vector<profiler::Rehearsal> rehearsals_;
  profiler::Cores cores_;
  std::vector<profiler::LayerSamples> alone_;                   // by layer, the loss last
  std::vector<std::vector<profiler::LayerSamples>> contended_;  // by rank and layer
  std::vector<std::vector<double>> plays_;  // each: seconds of all events of the first pipeline
  std::chrono::steady_clock::time_point begin_;
  plan::Seconds measured_over_;
};

/// The costs with factors that make each event as long as `seconds` says; 0: as it is.
sim::StepCosts with_measured(const sim::Structure& structure, sim::StepCosts costs,
                             const std::vector<double>& seconds);

}  // namespace pipewright::loop
