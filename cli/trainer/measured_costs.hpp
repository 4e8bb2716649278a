#pragma once

// What a scenario's layers cost on this machine.

#include <string>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "workload.hpp"

namespace pipewright::cli {

/// Measures the layers of a scenario on this machine, for at least `over`, with a progress line. On
/// CPUs alone and while as many cores work as the scenario has ranks here. Throws Stopped when the
/// user asked to stop.
plan::LayerCosts measure_costs(const plan::Scenario& scenario, const Workload& workload,
                               plan::Seconds over = {});

/// Costs from `file`, or measured now when there is none.
plan::LayerCosts costs_for(const plan::Scenario& scenario, const Workload& workload,
                           const std::string& file);

}  // namespace pipewright::cli
