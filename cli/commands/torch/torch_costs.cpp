#include "commands/torch/torch_costs.hpp"

#include <algorithm>

#include "pipewright/plan/json/json_document.hpp"
#include "print/console.hpp"
#include "process/interrupt.hpp"

namespace pipewright::cli {

loop::MeasuredLayers measure_layers(const plan::Scenario& scenario, const loop::Workload& workload,
                                    plan::Seconds over, bool inspected) {
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
  auto measured = loop::measure_layers(scenario, workload, over, interrupted(), report, inspected);
  if (!measured.why_host_clock.empty()) {
    line.clear();
    say(measured.why_host_clock);
    say("so the costs are by the host's clock, which waits for the GPU after each layer");
  }
  return measured;
}

plan::LayerCosts costs_for(const plan::Scenario& scenario, const loop::Workload& workload,
                           const std::string& file) {
  if (!file.empty())
    return plan::layer_costs_from_json(plan::JsonDocument::read(file));
  say(fmt::format("profiling {} layers on this machine's {} …", workload.setup().layers.size(),
                  workload.device().device.is_cpu() ? "CPU" : "GPU"));
  auto costs = measure_layers(scenario, workload).costs;
  double worst = 0;
  for (const plan::LayerCost& layer : costs.layers)
    worst = std::max(worst, layer.spread);
  say(fmt::format("measured on {}; the largest spread of a layer is {:.1f} %", costs.device,
                  100 * worst));
  return costs;
}

}  // namespace pipewright::cli
