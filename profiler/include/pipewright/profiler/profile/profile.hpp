#pragma once

// Measures the cost of each layer on this machine's CPU or a GPU. Runs the model section by section
// (sections.hpp), microbatch by microbatch, layer by layer, as training does, so caches are as warm
// as in training and not warmer. On a CPU it measures on one core alone, and while as many cores as
// will train do the same.

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
  int passes = 0;          // passes so far, of this section
  double spread = 0;       // of the section's forward and backward
  plan::Seconds passed{};  // since the first pass, of all sections
  int section = 1;
  int sections = 1;  // number of sections that are measured
};

struct ProfileRequest {
  plan::ProfileSettings settings{};
  std::function<void(const Progress&)> report{};  // called after each pass
  const std::atomic<bool>* stop = nullptr;        // ends it early
  /// How long to measure, to within a pass of a section; each section has at least one pass. 0:
  /// until the time of a pass has a spread (interquartile range over median) of at most
  /// `settings.spread`, within its bounds on the number of repeats.
  plan::Seconds over{};
  /// With `over`: the number of passes after which a section is measured well enough to end
  /// earlier; 0: no such number.
  int enough_passes = 0;
  plan::Bytes budget = section_budget;
  std::vector<LayerOutline> outlines{};  // of the bench; if empty, they are computed
  /// Marks layers, the loss last, whose costs are known and which are left out; may be empty.
  std::vector<bool> known{};
};

struct Profiled {
  plan::LayerCosts costs;
  std::vector<EquivalentLayers>
      alike;         // layers that share costs, and how their measurements differ
  int sections = 1;  // number of sections in the model
  int passes = 0;    // of the section with the fewest passes
  /// The number of cores that memory sufficed for. If it is less than requested, contended times
  /// are of that many cores.
  int at_once = 1;
};

/// Measures all layers. Each figure is a mean over the passes (plan::typical_mean). In a model of
/// several sections, all equivalent layers get the same times, from all places where they were
/// measured; in a model of one section, each layer has its own. Runs on the calling thread only. If
/// it is stopped, returns what was measured.
Profiled profile_layers(LayerBench& bench, const ProfileRequest& request);

/// Measures on several cores: a pass on the first core alone, then one on all at once, alternating.
/// `benches` has one equal bench for each of `cores`. Each core has a copy of the section; if
/// memory is short (exec::memory_left), fewer cores do. The memory figures are those of the first
/// core, measured on the calling thread.
Profiled profile_layers(const std::vector<std::unique_ptr<LayerBench>>& benches, Cores& cores,
                        const ProfileRequest& request);

/// Returns the costs only.
plan::LayerCosts profile(LayerBench& bench, const plan::ProfileSettings& settings,
                         const std::function<void(const Progress&)>& report = {},
                         const std::atomic<bool>* stop = nullptr);

/// Returns a name such as "Intel(R) Xeon(R) Processor", from /proc/cpuinfo; "CPU" if that has none.
std::string cpu_name();

}  // namespace pipewright::profiler
