#pragma once

// Measures what each layer costs on this machine's CPU or a GPU, by running the whole model
// microbatch by microbatch, layer by layer, as training does: so caches are as warm as they will
// be, not warmer. On a CPU it does so alone, and while as many cores do the same as will train.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/profiler/layer_bench.hpp"

namespace pipewright::profiler {

struct Progress {
  int passes = 0;          // so far
  double spread = 0;       // of the whole model's forward and backward
  plan::Seconds passed{};  // since the first one
};

/// Runs passes until the time of a whole pass has a spread (interquartile range over median) of at
/// most `settings.spread`, within its bounds on the number of repeats, and for at least `over`.
/// Each figure is a mean over the passes (plan::typical_mean). Runs on the calling thread alone.
/// `stop` ends it early by returning what was measured; `report` is called after each pass.
plan::LayerCosts profile(LayerBench& bench, const plan::ProfileSettings& settings,
                         const std::function<void(const Progress&)>& report = {},
                         const std::atomic<bool>* stop = nullptr, plan::Seconds over = {});

/// The same on several cores: a pass on one of them alone, then one on all at once, in turn.
/// `benches`: one for each core, alike; `cores`: theirs. The memory figures are of the first one,
/// from the calling thread.
plan::LayerCosts profile(const std::vector<std::unique_ptr<LayerBench>>& benches, Cores& cores,
                         const plan::ProfileSettings& settings,
                         const std::function<void(const Progress&)>& report = {},
                         const std::atomic<bool>* stop = nullptr, plan::Seconds over = {});

/// Such as "Intel(R) Xeon(R) Processor", from /proc/cpuinfo; "CPU" where that is silent.
std::string cpu_name();

}  // namespace pipewright::profiler
