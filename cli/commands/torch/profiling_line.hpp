#pragma once

// Shows the progress of layer measurements on a line that updates in place.

#include <functional>

#include "pipewright/loop_torch/measured_costs.hpp"

namespace pipewright::cli {

/// Returns the callback to be called while layers are measured, for at least `over`.
std::function<void(const profiler::Progress&)> profiling_line(const plan::Scenario& scenario,
                                                              plan::Seconds over = {});

}  // namespace pipewright::cli
