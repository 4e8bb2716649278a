#include "print/plan_table.hpp"

#include <fmt/format.h>

#include <numeric>
#include <thread>

#include "pipewright/plan/quantity_text.hpp"

namespace pipewright::cli {

std::vector<double> sums_of(const std::vector<double>& weights,
                            const std::vector<int>& boundaries) {
  std::vector<double> sums;
  for (std::size_t part = 1; part < boundaries.size(); ++part)
    sums.push_back(std::accumulate(weights.begin() + boundaries[part - 1],
                                   weights.begin() + boundaries[part], 0.0));
  return sums;
}

std::string core_warning(const plan::Scenario& scenario) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int ranks = plan::ranks_of_job(scenario.pipeline);
  if (ranks <= cores)
    return "";
  return fmt::format(
      "note: {} ranks share {} cores, but the prediction assumes one core per rank: expect "
      "training to take longer than predicted\n",
      ranks, cores);
}

std::string device_warning(const plan::Scenario& scenario) {
  const int ranks = plan::ranks_of_job(scenario.pipeline);
  const int devices = device_count(scenario.cluster);
  if (ranks <= devices)
    return "";
  return fmt::format(
      "note: {} ranks, but the cluster has {} device{}: the prediction assumes one device per "
      "rank; set cluster.nodes and cluster.devices_per_node",
      ranks, devices, devices == 1 ? "" : "s");
}

std::string plan_table(const sim::ScenarioPlan& plan, const plan::LayerCosts& costs) {
  std::string text = fmt::format("partition {}\n", plan::to_string(plan.partition.boundaries));
  text +=
      "stage  rank  layers                  forward   backward  parameters  "
      "activations/microbatch\n";
  for (std::size_t s = 0; s < plan.costs.stages.size(); ++s) {
    const plan::StageCost& cost = plan.costs.stages[s];
    const auto first = static_cast<std::size_t>(plan.partition.boundaries[s]);
    const auto last = static_cast<std::size_t>(plan.partition.boundaries[s + 1]) - 1;
    text += fmt::format(
        "{:<5}  {:<4}  {:<22} {:>8} {:>10} {:>11} {:>12}\n", s,
        plan.program().placement.routes.front()[s],
        first == last ? costs.layers[first].name
                      : fmt::format("{} .. {}", costs.layers[first].name, costs.layers[last].name),
        plan::time_text(cost.forward), plan::time_text(cost.input_gradient + cost.weight_gradient),
        plan::bytes_text(cost.parameters), plan::bytes_text(cost.activation));
  }
  if (costs.tensor < plan.costs.shards)
    text += fmt::format(
        "the costs are for whole layers: they are divided equally among {} tensor-parallel ranks\n",
        plan.costs.shards);
  return text;
}

}  // namespace pipewright::cli
