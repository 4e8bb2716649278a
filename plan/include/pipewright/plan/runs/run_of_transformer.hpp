#pragma once

// From the sizes of a transformer to a row of a table of training runs.

#include "pipewright/plan/model/megatron_arguments.hpp"
#include "pipewright/plan/runs/training_run.hpp"

namespace pipewright::plan {

/// A run of a transformer on the devices of one tensor and context group: its sizes, for
/// `transformer_work` and `transformer_memory`. Who plans sets data, pipeline and batch sizes.
TrainingRun run_of(const DescribedTransformer& transformer);

}  // namespace pipewright::plan
