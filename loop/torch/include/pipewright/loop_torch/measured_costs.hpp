#pragma once

// Measures the layer costs of a scenario on this machine.

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

/// Options for measuring layers and for the cost cache.
struct MeasureOptions {
  plan::Seconds over{};   // as in profiler::ProfileRequest
  int enough_passes = 0;  // likewise
  std::function<void(const profiler::Progress&)> progress{};
  bool inspected = false;         // also breaks the times down by kernel or operator
  std::filesystem::path cache{};  // folder of the cost cache; empty disables the cache
  bool fresh = false;             // measure all layers even if they are cached
  Say say{};                      // receives messages about cache files that cannot be used
};

struct MeasuredLayers {
  plan::LayerCosts costs;
  std::optional<profiler::Inspection> inspection;  // breakdown of the times by kernel or operator
  /// Why the GPU's activity could not be recorded, so that costs are by the host's clock.
  std::string why_host_clock{};
  /// Groups of identical layers, and where they were measured.
  std::vector<profiler::EquivalentLayers> alike{};
  /// Cores that were measured at once; memory may limit them.
  int at_once = 1;
  CachedLayers known{};  // layers whose costs came from the cache
};

/// Measures the layers of a scenario on this machine. On CPUs they are measured alone and while as
/// many cores compute as the scenario has ranks on this node. On a GPU the device times come from
/// CUPTI, and the breakdown by kernel is always made. On CPUs, layers that have a kind are read
/// from and written to the cache. Throws Stopped once `stop` is set.
MeasuredLayers measure_layers(const plan::Scenario& scenario, const Workload& workload,
                              const std::atomic<bool>& stop, const MeasureOptions& options = {});

/// Returns a message for people, one line for each group of layers that was cached or measured on
/// behalf of others. Empty if every layer was measured individually.
std::string in_words(const MeasuredLayers& measured);
/// Returns the groups of identical layers as JSON, as it is stored with the costs; null if there
/// are none.
plan::Json alike_json(const MeasuredLayers& measured);

/// Returns a message for people: why the GPU's activity was not recorded, and the consequence.
std::string host_clock_message(const MeasuredLayers& measured);

/// Measures the layers and returns their costs only.
plan::LayerCosts measure_costs(const plan::Scenario& scenario, const Workload& workload,
                               plan::Seconds over, const std::atomic<bool>& stop,
                               const std::function<void(const profiler::Progress&)>& progress);

/// Returns the name of a layer as reports show it. The index after the last layer is the loss.
std::string layer_name(const plan::LayerCosts& costs, int layer);

}  // namespace pipewright::loop
