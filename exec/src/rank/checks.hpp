#pragma once

// What must hold before the first layer is built.

#include "pipewright/exec/rank/executor.hpp"

namespace pipewright::exec {

/// Throws InputError in words.
void check(const plan::Program& program, const plan::Partition& partition,
           const TrainingSetup& setup, const ExecutorOptions& options);
void check_evaluation(const plan::Program& program, const plan::Program& trained);

}  // namespace pipewright::exec
