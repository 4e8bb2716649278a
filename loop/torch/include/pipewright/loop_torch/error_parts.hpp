#pragma once

// What a run's prediction is made of, and what its error is: whose fault was it?

#include "pipewright/loop/compare/action_errors.hpp"
#include "pipewright/loop_torch/dress_rehearsal.hpp"

namespace pipewright::loop {

/// Medians over the steps after the first `skip`; the peak is the largest of all steps.
loop::StepFigures typical_figures(const std::vector<loop::StepFigures>& steps,
                                  std::size_t skip = 0);

/// The prediction from what was played between the steps.
struct RehearsedPrediction {
  plan::LayerCosts costs;
  loop::StepFigures figures;  // medians over the plays
  plan::Timeline timeline;    // of the play whose iteration is nearest to the median
};
RehearsedPrediction predict(const plan::Scenario& scenario, const Plan& plan,
                            const plan::LayerCosts& planned, const Rehearsed& rehearsed);

/// Predicted less measured iteration, in parts that add up to it.
struct ErrorParts {
  plan::Seconds layers;   // the measured actions were as long as they were, not as predicted
  plan::Seconds launch;   // time between an action and the next one that could have run
  plan::Seconds waiting;  // what is left: transfers, and waiting for them
};
/// By simulating each measured step once with its own actions, and once more with the gaps between
/// them.
ErrorParts error_parts(const Plan& plan, const std::vector<plan::Timeline>& steps,
                       plan::Seconds predicted, plan::Seconds measured);

}  // namespace pipewright::loop
