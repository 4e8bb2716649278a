#pragma once

// The loop: train by a plan, predict from the same minutes, and say whose fault the error is.

#include <optional>

#include "pipewright/loop_torch/explained_error.hpp"
#include "pipewright/loop_torch/measured_timeline.hpp"
#include "pipewright/loop_torch/training.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::loop {

/// What was predicted, when, and what came of it.
struct Told {
  plan::StepFigures planned;    // before the training
  plan::StepFigures predicted;  // from the same minutes, where that can be
  plan::StepFigures measured;
  ErrorParts parts{};
  double drift = 0;  // of the machine, while it was measured
  bool rehearsed = false;
};

struct RunOutcome {
  Plan plan;  // with the last prediction
  TrainingOutcome training;
  Told told;
  std::optional<plan::LayerCosts> rehearsed{};  // measured between the steps
  std::optional<MeasuredTimeline> measured{};   // the typical step
};

/// Trains by the plan that these costs led to. `rehearses`: what ranks compute is played through
/// between the steps, where that can be done. In a job every process calls it; the first is told
/// what was predicted and measured, but nothing was measured of all where it was interrupted.
RunOutcome run(const plan::Scenario& scenario, Plan plan, const plan::LayerCosts& costs,
               const Workload& workload, Membership& members, const TrainingWishes& wishes,
               bool rehearses);

/// What a run directory says of it.
plan::Json report_of(const plan::Scenario& scenario, const RunOutcome& outcome,
                     const Workload& workload);

}  // namespace pipewright::loop
