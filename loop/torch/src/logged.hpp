#pragma once

// Training that leaves a line for each step.

#include "pipewright/loop/record/step_log.hpp"
#include "pipewright/loop_torch/prepared.hpp"
#include "pipewright/loop_torch/training.hpp"

namespace pipewright::loop {

/// With a line of steps.jsonl and the timeline of the last step, for those who look on. `log` and
/// `prepared` must outlive the training.
TrainingOptions logged(const TrainingOptions& options, StepLog& log, const Prepared& prepared);

}  // namespace pipewright::loop
