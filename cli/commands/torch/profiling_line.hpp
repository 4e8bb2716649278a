#pragma once

// The progress of measuring layers, on a line that moves.

#include <functional>

#include "pipewright/loop_torch/measured_costs.hpp"

namespace pipewright::cli {

/// To be called back while layers are measured, for at least `over`.
std::function<void(const profiler::Progress&)> profiling_line(const plan::Scenario& scenario,
                                                              plan::Seconds over = {});

}  // namespace pipewright::cli
