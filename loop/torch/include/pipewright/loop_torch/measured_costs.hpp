#pragma once

// What a scenario's layers cost on this machine.

#include <atomic>
#include <functional>

#include "pipewright/loop_torch/workload.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/profile.hpp"

namespace pipewright::loop {

/// Measures the layers of a scenario on this machine, for at least `over`. On CPUs alone and while
/// as many cores work as the scenario has ranks here. Throws Stopped once `stop` is set.
plan::LayerCosts measure_costs(const plan::Scenario& scenario, const Workload& workload,
                               plan::Seconds over, const std::atomic<bool>& stop,
                               const std::function<void(const profiler::Progress&)>& progress);

}  // namespace pipewright::loop
