#include "print/costs_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace pipewright::cli {
namespace {

std::string cost_row(const plan::LayerCost& cost) {
  return fmt::format("{:<14} {:9.3f} {:9.3f} {:9.3f} {:9.3f} {:10.3f} {:10.3f} {:8.3f} {:7.1f}\n",
                     cost.name, 1e3 * cost.forward.value, 1e3 * cost.input_gradient.value,
                     1e3 * cost.weight_gradient.value, 1e3 * cost.optimizer_step.value,
                     static_cast<double>(cost.parameters.value) / 1e6,
                     static_cast<double>(cost.activation.value) / 1e6,
                     static_cast<double>(cost.output.value) / 1e6, 100 * cost.spread);
}

plan::Seconds forward_of(const plan::LayerCost& cost) { return cost.forward; }
plan::Seconds backward_of(const plan::LayerCost& cost) {
  return cost.input_gradient + cost.weight_gradient - cost.splitting;
}

/// Returns by how many percent all layers take longer while other cores compute.
double slower(const plan::LayerCosts& costs, plan::Seconds (*part)(const plan::LayerCost&)) {
  const plan::LayerCosts contended = plan::contended(costs);
  plan::Seconds alone = part(costs.loss), beside = part(contended.loss);
  for (std::size_t l = 0; l < costs.layers.size(); ++l) {
    alone += part(costs.layers[l]);
    beside += part(contended.layers[l]);
  }
  return 100 * (beside / alone - 1);
}

/// Returns the largest load imbalance of the experts; empty if the model is not a mixture.
std::string loads_line(const plan::LayerCosts& costs) {
  std::map<int, std::pair<double, std::string>> busiest;  // by number of ranks
  for (const plan::LayerCost& cost : costs.layers)
    for (const plan::ExpertLoad& load : cost.expert_loads)
      busiest[load.ranks] = std::max(busiest[load.ranks], {load.busiest, cost.name});
  std::string text;
  for (const auto& [ranks, most] : busiest)
    text += fmt::format("{} {:.2f} of {} ({})", text.empty() ? "" : ",", most.first, ranks,
                        most.second);
  return text.empty() ? ""
                      : "experts: load of the busiest rank over the mean, at most:" + text + "\n";
}

}  // namespace

std::string costs_table(const plan::LayerCosts& costs) {
  auto text = fmt::format(
      "{}, {}, microbatches of {}{}\n{:<14} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>8} {:>7}\n",
      costs.device, costs.software, costs.microbatch_size,
      costs.tensor > 1
          ? fmt::format(", one of {} tensor-parallel ranks of each layer", costs.tensor)
          : "",
      "layer", "forward", "in.grad", "w.grad", "step", "parameters", "activation", "output",
      "spread");
  text += fmt::format("{:<14} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>8} {:>7}\n", "", "ms", "ms",
                      "ms", "ms", "MB", "MB", "MB", "%");
  for (const plan::LayerCost& cost : costs.layers)
    text += cost_row(cost);
  text += cost_row(costs.loss);
  text += loads_line(costs);
  if (costs.busy_cores > 1)
    text += fmt::format("while {} cores compute: forward {:+.1f} %, backward {:+.1f} %\n",
                        costs.busy_cores, slower(costs, forward_of), slower(costs, backward_of));
  if (costs.measured_over == plan::Seconds{})
    return text;  // costs from the cache, measured earlier
  return text + fmt::format("the speed drifted by {:.1f} % in {:.0f} s\n", 100 * costs.drift,
                            costs.measured_over.value);
}

}  // namespace pipewright::cli
