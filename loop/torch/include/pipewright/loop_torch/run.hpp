#pragma once

// Trains with a prepared plan and measures: compares the prediction with the measured steps and
// splits its error into parts.

#include <optional>

#include "pipewright/loop_torch/error_parts.hpp"
#include "pipewright/loop_torch/measured_timeline.hpp"
#include "pipewright/loop_torch/prepared.hpp"
#include "pipewright/loop_torch/training.hpp"
#include "pipewright/models/measured/recorded_steps.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::loop {

/// The figures of an iteration as planned, predicted and measured.
struct RunFigures {
  loop::StepFigures planned;  // before the training
  /// From a rehearsal during the training, if possible; otherwise as planned.
  loop::StepFigures predicted;
  loop::StepFigures measured;
  ErrorParts parts{};
  double drift = 0;  // of the machine's speed during the measurement
  bool rehearsed = false;
};

struct RunOutcome {
  Plan plan;  // with the last prediction
  TrainingOutcome training;
  RunFigures figures;
  std::optional<plan::LayerCosts> rehearsed{};  // costs measured between the steps
  std::optional<MeasuredTimeline> measured{};   // the typical step
  models::RecordedSteps recorded{};             // the times of all steps after warm-up
};

/// Trains with the plan. If the costs were measured here, the compute of the ranks is rehearsed
/// between steps where possible. Collective over the processes of a job; only the first gets the
/// prediction and the measurement. In a job that was interrupted, nothing is measured.
RunOutcome run(const Prepared& prepared, Membership& members, const TrainingOptions& options);

/// Returns the report that is stored in the run's folder.
plan::Json report_of(const Prepared& prepared, const RunOutcome& outcome);

}  // namespace pipewright::loop
