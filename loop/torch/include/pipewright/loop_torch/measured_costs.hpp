#pragma once

// What a scenario's layers cost on this machine.

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/loop_torch/cost_cache.hpp"
#include "pipewright/loop_torch/workload.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/profile/inspection.hpp"
#include "pipewright/profiler/profile/profile.hpp"

namespace pipewright::loop {

/// How layers are measured, and whether they have to be.
struct MeasureOptions {
  plan::Seconds over{};  // as in profiler::ProfileRequest
  std::function<void(const profiler::Progress&)> progress{};
  bool inspected = false;         // also looks into what the times are made of
  std::filesystem::path cache{};  // of costs that were measured before; empty: there is none
  bool fresh = false;             // all are measured, whatever was before
  Say say{};                      // of files in the cache that are no use
};

struct MeasuredLayers {
  plan::LayerCosts costs;
  std::optional<profiler::Inspection> inspection;  // what the times are made of
  std::string why_host_clock{};  // of a GPU that cannot be watched: costs by the host's clock
  std::vector<profiler::AlikeLayers> alike{};  // of several layers, and where they were measured
  int at_once = 1;                             // cores that there was memory for
  KnownLayers known{};                         // that were measured before
};

/// Measures the layers of a scenario on this machine. On CPUs alone and while as many cores work as
/// the scenario has ranks here; on a GPU by what the device did, as CUPTI tells it, where it is
/// always looked into what times are made of. On CPUs layers that have a kind are kept in the
/// cache, and taken from it. Throws Stopped once `stop` is set.
MeasuredLayers measure_layers(const plan::Scenario& scenario, const Workload& workload,
                              const std::atomic<bool>& stop, const MeasureOptions& options = {});

/// For people, a line each: what was not measured now, and what was measured for whom. Empty where
/// all was measured, each layer by itself.
std::string in_words(const MeasuredLayers& measured);
/// The same for programs, as costs have it beside the layers; null where there is nothing to say.
plan::Json alike_json(const MeasuredLayers& measured);

/// For people: why a GPU was not watched, and what that means.
std::string by_the_hosts_clock(const MeasuredLayers& measured);

/// The costs alone.
plan::LayerCosts measure_costs(const plan::Scenario& scenario, const Workload& workload,
                               plan::Seconds over, const std::atomic<bool>& stop,
                               const std::function<void(const profiler::Progress&)>& progress);

/// The name of a layer as reports have it; the loss is behind the last one.
std::string layer_name(const plan::LayerCosts& costs, int layer);

}  // namespace pipewright::loop
