#pragma once

// Checks that a training can run, before its first layer is built.

#include "pipewright/exec/rank/executor.hpp"

namespace pipewright::exec {

/// Throws InputError that says what cannot run and why.
void check(const plan::Program& program, const plan::Partition& partition,
           const TrainingSetup& setup, const ExecutorOptions& options);
void check_evaluation(const plan::Program& program, const plan::Program& trained);

}  // namespace pipewright::exec
