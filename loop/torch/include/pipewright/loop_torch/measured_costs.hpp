#pragma once

// What a scenario's layers cost on this machine.

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "pipewright/loop_torch/workload.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/inspection.hpp"
#include "pipewright/profiler/profile.hpp"

namespace pipewright::loop {

struct MeasuredLayers {
  plan::LayerCosts costs;
  std::optional<profiler::Inspection> inspection;  // what the times are made of
  std::string why_host_clock{};  // of a GPU that cannot be watched: costs by the host's clock
};

/// Measures the layers of a scenario on this machine, for at least `over`. On CPUs alone and while
/// as many cores work as the scenario has ranks here; on a GPU by what the device did, as CUPTI
/// tells it. `inspected`: also looks into what the times are made of, as is always done on a GPU.
/// Throws Stopped once `stop` is set.
MeasuredLayers measure_layers(const plan::Scenario& scenario, const Workload& workload,
                              plan::Seconds over, const std::atomic<bool>& stop,
                              const std::function<void(const profiler::Progress&)>& progress,
                              bool inspected = false);

/// For people: why a GPU was not watched, and what that means.
std::string by_the_hosts_clock(const MeasuredLayers& measured);

/// The costs alone.
plan::LayerCosts measure_costs(const plan::Scenario& scenario, const Workload& workload,
                               plan::Seconds over, const std::atomic<bool>& stop,
                               const std::function<void(const profiler::Progress&)>& progress);

/// The name of a layer as reports have it; the loss is behind the last one.
std::string layer_name(const plan::LayerCosts& costs, int layer);

}  // namespace pipewright::loop
