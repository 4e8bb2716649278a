#pragma once

// Adds a progress log to a training.

#include "pipewright/loop/record/step_log.hpp"
#include "pipewright/loop_torch/prepared.hpp"
#include "pipewright/loop_torch/training.hpp"

namespace pipewright::loop {

/// Returns options that also log a line of steps.jsonl for each step, and the timeline of the last
/// step. `log` and `prepared` must outlive the training.
TrainingOptions logged(const TrainingOptions& options, StepLog& log, const Prepared& prepared);

}  // namespace pipewright::loop
