#pragma once

// Prints the parts of measured times.

#include <string>

#include "pipewright/loop_torch/kernel_steps.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/activity/work_report.hpp"

namespace pipewright::cli {

/// Returns the parts of the layers' time, their memory, the longest kernels, and counts of lost
/// records.
std::string work_table(const profiler::WorkReport& report, const plan::LayerCosts& costs);

/// Returns the parts of a step's actions by rank.
std::string work_table(const loop::StepKernels& kernels);

}  // namespace pipewright::cli
