#pragma once

// What measured time is made of, for people.

#include <string>

#include "pipewright/loop_torch/kernel_steps.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/activity/work_report.hpp"

namespace pipewright::cli {

/// What the layers' time is made of, their memory, the kernels that take the longest, and what was
/// not seen.
std::string work_table(const profiler::WorkReport& report, const plan::LayerCosts& costs);

/// What the actions of a step are made of, by rank.
std::string work_table(const loop::StepKernels& kernels);

}  // namespace pipewright::cli
