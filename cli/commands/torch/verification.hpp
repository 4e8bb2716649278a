#pragma once

#include "pipewright/loop_torch/verify.hpp"

namespace pipewright::cli {

/// Throws InputError for a schedule whose training is another than any without a pipeline.
void require_verifiable(const plan::Program& program, const plan::Scenario& scenario);

/// Trains the same steps without a pipeline, with a progress line, and compares. Throws
/// loop::Stopped.
loop::Verification verify(const plan::Scenario& scenario, const loop::Workload& workload,
                          const loop::TrainingOutcome& pipelined);

}  // namespace pipewright::cli
