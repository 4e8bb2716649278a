#pragma once

// Training that leaves a line for each step.

#include "pipewright/loop/step_log.hpp"
#include "pipewright/loop_torch/prepared.hpp"
#include "pipewright/loop_torch/training.hpp"

namespace pipewright::loop {

/// A step as steps.jsonl has it, of its timeline with the causes of idle time, if they are known.
StepLine step_line(const TrainedStep& step, const plan::Timeline& timeline,
                   const Prepared& prepared);

/// With a line of steps.jsonl and the timeline of the last step, for those who look on. `log` and
/// `prepared` must outlive the training.
TrainingOptions logged(const TrainingOptions& options, StepLog& log, const Prepared& prepared);

}  // namespace pipewright::loop
