#include "measured_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "console.hpp"
#include "interrupt.hpp"
#include "layer_bench.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::cli {
namespace {

/// How many ranks compute at once on one of the scenario's nodes, if this machine is one of them.
int busy_cores(const plan::Scenario& scenario) {
  const int ranks = scenario.pipeline.ranks * scenario.pipeline.replicas;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::min({ranks, scenario.cluster.devices_per_node, cores});
}

}  // namespace

plan::LayerCosts measure_costs(const plan::Scenario& scenario, const Workload& workload,
                               plan::Seconds over) {
  std::vector<std::unique_ptr<LayerBench>> benches;
  std::vector<const profiler::Subject*> subjects;
  const int count = workload.device().device.is_cpu() ? busy_cores(scenario) : 1;
  for (int core = 0; core < count; ++core)
    subjects.push_back(&benches.emplace_back(std::make_unique<LayerBench>(workload))->subject());
  ProgressLine line;
  const auto report = [&](const profiler::Progress& progress) {
    const auto wanted = scenario.profile.spread;
    line.show(
        over > progress.passed
            ? fmt::format("profiling: pass {}, {:.0f} of {:.0f} s", progress.passes,
                          progress.passed.value, over.value)
            : fmt::format("profiling: pass {} of at most {}, spread {:.1f} % (wanted {:.1f} %)",
                          progress.passes, scenario.profile.most_repeats, 100 * progress.spread,
                          100 * wanted));
  };
  profiler::Cores cores = rank_cores(benches);
  plan::LayerCosts costs;
  // The memory figures are those of the first bench, so all is measured on its thread.
  const exec::ChargeTo charge(benches.front()->account());
  costs = profiler::profile(subjects, cores, scenario.profile, report, &interrupted(), over);
  if (interrupted())
    throw Stopped{};
  return costs;
}

plan::LayerCosts costs_for(const plan::Scenario& scenario, const Workload& workload,
                           const std::string& file) {
  if (!file.empty())
    return plan::layer_costs_from_json(plan::JsonDocument::read(file));
  say(fmt::format("profiling {} layers on this machine's {} …", workload.setup().layers.size(),
                  workload.device().device.is_cpu() ? "CPU" : "GPU"));
  auto costs = measure_costs(scenario, workload);
  double worst = 0;
  for (const plan::LayerCost& layer : costs.layers)
    worst = std::max(worst, layer.spread);
  say(fmt::format("measured on {}; the largest spread of a layer is {:.1f} %", costs.device,
                  100 * worst));
  return costs;
}

}  // namespace pipewright::cli
