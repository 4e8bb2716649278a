#pragma once

// Training by a prepared plan while what it costs is measured: what was predicted, what came of it,
// and whose fault the error is.

#include <optional>

#include "pipewright/loop_torch/error_parts.hpp"
#include "pipewright/loop_torch/measured_timeline.hpp"
#include "pipewright/loop_torch/prepared.hpp"
#include "pipewright/loop_torch/training.hpp"
#include "pipewright/models/measured/recorded_steps.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::loop {

/// An iteration as it was planned, predicted and measured.
struct RunFigures {
  loop::StepFigures planned;    // before the training
  loop::StepFigures predicted;  // from the same minutes, where that can be
  loop::StepFigures measured;
  ErrorParts parts{};
  double drift = 0;  // of the machine, while it was measured
  bool rehearsed = false;
};

struct RunOutcome {
  Plan plan;  // with the last prediction
  TrainingOutcome training;
  RunFigures figures;
  std::optional<plan::LayerCosts> rehearsed{};  // measured between the steps
  std::optional<MeasuredTimeline> measured{};   // the typical step
  models::RecordedSteps recorded{};             // what all steps but the first few took
};

/// Trains by the plan. Where its costs were measured here, what ranks compute is played through
/// between the steps, if that can be done. In a job every process calls it; the first has what was
/// predicted and measured, but nothing was measured of all where it was interrupted.
RunOutcome run(const Prepared& prepared, Membership& members, const TrainingOptions& options);

/// What a run's folder says of it.
plan::Json report_of(const Prepared& prepared, const RunOutcome& outcome);

}  // namespace pipewright::loop
