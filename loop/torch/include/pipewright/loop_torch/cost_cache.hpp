#pragma once

// A cache of measured layer costs: a folder with a JSON file for each kind of layer, valid for one
// machine and one set of settings. The cache is optional. A damaged or stale entry is reported and
// the layer is measured again.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "pipewright/loop_torch/resume.hpp"
#include "pipewright/loop_torch/workload.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::loop {

/// Returns $XDG_CACHE_HOME/pipewright or ~/.cache/pipewright; empty if neither variable is set.
std::filesystem::path cache_folder();

/// The layers whose costs came from the cache.
struct CachedLayers {
  int layers = 0;
  std::string since{};  // day of the oldest entry, such as "2026-11-25"
  std::filesystem::path folder{};
};

class CostCache {
 public:
  /// Opens the cache. `about` holds everything besides the layer that costs depend on, as
  /// `facts_of_costs` returns it. `say` receives a message for each file that cannot be used.
  CostCache(std::filesystem::path folder, plan::Json about, Say say);

  struct Entry {
    plan::LayerCost cost;
    std::string measured;  // day of the measurement
  };
  /// Returns the cached cost of the layers with the key `alike` (profiler::LayerOutline), if there
  /// is one.
  std::optional<Entry> find(const std::string& alike) const;
  /// Stores a cost. The file is written atomically. If it cannot be written, this is reported once
  /// and caching stops.
  void keep(const std::string& alike, const plan::LayerCost& cost);

 private:
  plan::Json key_of(const std::string& alike) const;
  std::filesystem::path file_of(const plan::Json& key) const;
  void say(const std::string& text) const;

  std::filesystem::path folder_;
  plan::Json about_;
  Say say_;
  bool can_write_ = true;
};

/// Returns the machine, its software, and the sizes and settings of the training that layer costs
/// depend on.
plan::Json facts_of_costs(const plan::Scenario& scenario, const Workload& workload, int busy_cores);

}  // namespace pipewright::loop
