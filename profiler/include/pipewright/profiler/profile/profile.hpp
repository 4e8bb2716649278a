#pragma once

// Measures what each layer costs on this machine's CPU or a GPU, by running the model section by
// section (sections.hpp), microbatch by microbatch, layer by layer, as training does: so caches are
// as warm as they will be, not warmer. On a CPU it does so alone, and while as many cores do the
// same as will train.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/profiler/layers/layer_bench.hpp"
#include "pipewright/profiler/sections/sections.hpp"

namespace pipewright::profiler {

struct Progress {
  int passes = 0;          // so far, of this section
  double spread = 0;       // of the section's forward and backward
  plan::Seconds passed{};  // since the first one, of all sections
  int section = 1;
  int sections = 1;  // that are measured
};

struct ProfileRequest {
  plan::ProfileSettings settings{};
  std::function<void(const Progress&)> report{};  // called after each pass
  const std::atomic<bool>* stop = nullptr;        // ends it early
  /// So long, to within a pass of a section, of which each has at least one; 0: until the time of a
  /// pass has a spread (interquartile range over median) of at most `settings.spread`, within its
  /// bounds on the number of repeats.
  plan::Seconds over{};
  plan::Bytes budget = section_budget;
  std::vector<LayerOutline> outlines{};  // of the bench; empty: they are worked out
  /// By layer, the loss last: those whose costs are known and are left out; empty: none.
  std::vector<bool> known{};
};

struct Profiled {
  plan::LayerCosts costs;
  std::vector<AlikeLayers> alike;  // of several layers, and what their places had in common
  int sections = 1;                // that the model was cut into
  int passes = 0;                  // of the section that has the fewest
  /// Cores that there was memory for; of fewer than wanted are the contended times.
  int at_once = 1;
};

/// Each figure is a mean over the passes (plan::typical_mean). A model of several sections has the
/// same times for all layers that are alike, of all places where they were measured; in one section
/// each layer has its own. On the calling thread alone. Stopped, it has what was measured.
Profiled profile_layers(LayerBench& bench, const ProfileRequest& request);

/// The same on several cores: a pass on one of them alone, then one on all at once, in turn.
/// `benches`: one for each core, alike; `cores`: theirs. Each has a copy of the section; where
/// there is no memory for that (exec::memory_left), fewer do. The memory figures are of the first
/// one, from the calling thread.
Profiled profile_layers(const std::vector<std::unique_ptr<LayerBench>>& benches, Cores& cores,
                        const ProfileRequest& request);

/// The costs alone.
plan::LayerCosts profile(LayerBench& bench, const plan::ProfileSettings& settings,
                         const std::function<void(const Progress&)>& report = {},
                         const std::atomic<bool>* stop = nullptr);

/// Such as "Intel(R) Xeon(R) Processor", from /proc/cpuinfo; "CPU" where that is silent.
std::string cpu_name();

}  // namespace pipewright::profiler
