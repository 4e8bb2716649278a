#pragma once

// What layers cost when they were measured before, on this machine and in the same way: a folder
// with a JSON file for each kind of layer. Nobody needs it; whatever is wrong with it is said, and
// then measured.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "pipewright/loop_torch/resume.hpp"
#include "pipewright/loop_torch/workload.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::loop {

/// $XDG_CACHE_HOME/pipewright, or ~/.cache/pipewright; empty where neither is known.
std::filesystem::path cache_folder();

/// Layers whose costs were measured before.
struct KnownLayers {
  int layers = 0;
  std::string since{};  // when the oldest of them was measured: "2026-11-25"
  std::filesystem::path folder{};
};

class CostCache {
 public:
  /// `about`: all that costs depend on beside the layers, as `facts_of_costs` tells it. `say`: of
  /// files that are no use.
  CostCache(std::filesystem::path folder, plan::Json about, Say say);

  struct Entry {
    plan::LayerCost cost;
    std::string measured;  // the day
  };
  /// Of layers that are `alike` (profiler::LayerOutline).
  std::optional<Entry> find(const std::string& alike) const;
  /// Written whole or not at all. Where that cannot be, it is said, once.
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

/// The machine, its software, and the sizes and settings of a training that its layers' costs
/// depend on.
plan::Json facts_of_costs(const plan::Scenario& scenario, const Workload& workload, int busy_cores);

}  // namespace pipewright::loop
