#pragma once

// The prediction from a rehearsal, and the parts of a prediction's error.

#include "pipewright/loop/compare/action_errors.hpp"
#include "pipewright/loop_torch/dress_rehearsal.hpp"

namespace pipewright::loop {

/// Returns the medians over the steps after the first `skip`. The peak memory is the largest of all
/// steps.
loop::StepFigures typical_figures(const std::vector<loop::StepFigures>& steps,
                                  std::size_t skip = 0);

/// The prediction from the times rehearsed between the steps.
struct RehearsedPrediction {
  plan::LayerCosts costs;
  loop::StepFigures figures;  // medians over the plays
  plan::Timeline timeline;    // of the play whose iteration is closest to the median
};
RehearsedPrediction predict(const plan::Scenario& scenario, const Plan& plan,
                            const plan::LayerCosts& planned, const Rehearsed& rehearsed);

/// The error of the iteration (predicted less measured), as parts that add up to it.
struct ErrorParts {
  plan::Seconds layers;   // actions took another time than predicted
  plan::Seconds launch;   // time between an action and the next one that was ready to run
  plan::Seconds waiting;  // the rest: transfers, and waiting for them
};
/// Splits the error by simulating each measured step twice: with its measured actions, and with the
/// gaps between the actions as well.
ErrorParts error_parts(const Plan& plan, const std::vector<plan::Timeline>& steps,
                       plan::Seconds predicted, plan::Seconds measured);

}  // namespace pipewright::loop
