#pragma once

// What a scenario's layers cost on this machine, with a progress line.

#include <string>

#include "pipewright/loop_torch/measured_costs.hpp"

namespace pipewright::cli {

/// For at least `over`; says where a GPU could not be watched. Throws loop::Stopped when the user
/// asked to stop.
loop::MeasuredLayers measure_layers(const plan::Scenario& scenario, const loop::Workload& workload,
                                    plan::Seconds over = {}, bool inspected = false);

/// Costs from `file`, or measured now when there is none.
plan::LayerCosts costs_for(const plan::Scenario& scenario, const loop::Workload& workload,
                           const std::string& file);

}  // namespace pipewright::cli
