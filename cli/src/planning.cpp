#include "planning.hpp"

#include <fmt/format.h>

#include <numeric>
#include <thread>

#include "pipewright/plan/layer_weights.hpp"
#include "pipewright/plan/lower.hpp"
#include "pipewright/plan/schedules.hpp"
#include "pipewright/sim/simulate.hpp"

namespace pipewright::cli {
namespace {

plan::Timeline predict(const plan::Scenario& scenario, const Plan& plan) {
  const auto outcome = sim::simulate(plan.program, plan.costs, scenario.cluster);
  if (const auto* deadlock = std::get_if<sim::Deadlock>(&outcome))
    throw plan::Infeasible("deadlock: " + sim::to_string(*deadlock));
  return std::get<sim::Completed>(outcome).timeline;
}

/// Costs from a file may be those of another model or another microbatch size.
void check_costs(const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  const plan::Model model = model_of(scenario);
  if (costs.layers.size() != model.layers.size())
    throw plan::InputError(fmt::format("the costs are for {} layers, but the model has {}",
                                       costs.layers.size(), model.layers.size()));
  for (std::size_t l = 0; l < model.layers.size(); ++l)
    if (costs.layers[l].name != model.layers[l].name ||
        costs.layers[l].parameters != model.layers[l].parameter_bytes)
      throw plan::InputError(fmt::format(
          "the costs of layer {} are for \"{}\" of {} parameter bytes, but the model has \"{}\" of "
          "{} there",
          l, costs.layers[l].name, costs.layers[l].parameters.value, model.layers[l].name,
          model.layers[l].parameter_bytes.value));
  if (costs.microbatch_size != scenario.training.microbatch_size)
    throw plan::InputError(
        fmt::format("the costs are for microbatches of {}, but training.microbatch_size is {}",
                    costs.microbatch_size, scenario.training.microbatch_size));
}

/// Memory 0 means that the scenario sets no limit.
void check_memory(const plan::Scenario& scenario, const plan::Timeline& predicted) {
  const plan::Bytes limit = scenario.cluster.device.memory;
  if (limit == plan::Bytes{})
    return;
  const auto peaks = plan::peak_per_rank(predicted);
  for (std::size_t rank = 0; rank < peaks.size(); ++rank)
    if (peaks[rank] > limit)
      throw plan::Infeasible(fmt::format(
          "rank {} needs {:.1f} MB, but a {} has {:.1f} MB: use more ranks, or fewer or smaller "
          "microbatches",
          rank, static_cast<double>(peaks[rank].value) / 1e6, scenario.cluster.device.name,
          static_cast<double>(limit.value) / 1e6));
}

std::vector<double> weights_by(const std::string& method, const plan::Model& model,
                               const plan::LayerCosts& costs) {
  if (const auto pattern = plan::type_pattern(method))
    return plan::type_weights(model, *pattern);
  return method == "parameters" ? plan::parameter_weights(costs) : plan::profile_weights(costs);
}

}  // namespace

plan::Model read_model(const std::string& file) {
  const auto document = plan::JsonDocument::read(file);
  const plan::Json& root = document.root();
  if (root.is_object() && root.value("format", "") == "pipewright/scenario/1")
    return model_of(plan::scenario_from_json(document));
  return plan::model_from_json(document);
}

std::vector<double> sums_of(const std::vector<double>& weights,
                            const std::vector<int>& boundaries) {
  std::vector<double> sums;
  for (std::size_t part = 1; part < boundaries.size(); ++part)
    sums.push_back(std::accumulate(weights.begin() + boundaries[part - 1],
                                   weights.begin() + boundaries[part], 0.0));
  return sums;
}

std::vector<int> boundaries_by(const std::string& method, const std::vector<double>& weights,
                               int parts) {
  if (method == "uniform")
    return plan::uniform_boundaries(static_cast<int>(weights.size()), parts);
  return plan::balanced_boundaries(weights, parts);
}

Plan make_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  check_costs(scenario, costs);
  const plan::Pipeline& wanted = scenario.pipeline;
  Plan plan;
  plan.partition = plan::one_stage_per_rank(boundaries_by(
      wanted.partition, weights_by(wanted.partition, model_of(scenario), costs), wanted.ranks));
  plan.schedule = plan::make_schedule(wanted.schedule, wanted.ranks, wanted.microbatches);
  plan.program =
      plan::lower(plan.schedule, {wanted.communicators, wanted.transfers, wanted.blocking});
  plan.costs = plan::stage_costs(costs, plan.partition);
  plan.predicted = predict(scenario, plan);
  check_memory(scenario, plan.predicted);
  return plan;
}

std::string core_warning(const plan::Scenario& scenario) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (scenario.pipeline.ranks <= cores)
    return "";
  return fmt::format(
      "note: {} ranks share {} cores, but the prediction gives each rank a core of its own: expect "
      "training to take longer than predicted\n",
      scenario.pipeline.ranks, cores);
}

std::string plan_table(const Plan& plan, const plan::LayerCosts& costs) {
  std::string text = fmt::format("partition {}\n", plan::to_string(plan.partition.boundaries));
  text +=
      "stage  rank  layers                  forward   backward  parameters  "
      "activations/microbatch\n";
  for (std::size_t s = 0; s < plan.costs.size(); ++s) {
    const plan::StageCost& cost = plan.costs[s];
    const auto first = static_cast<std::size_t>(plan.partition.boundaries[s]);
    const auto last = static_cast<std::size_t>(plan.partition.boundaries[s + 1]) - 1;
    text += fmt::format(
        "{:<5}  {:<4}  {:<22} {:7.2f} ms {:7.2f} ms {:8.2f} MB {:8.2f} MB\n", s,
        plan.partition.rank_of_stage[s],
        first == last ? costs.layers[first].name
                      : fmt::format("{} .. {}", costs.layers[first].name, costs.layers[last].name),
        1e3 * cost.forward.value, 1e3 * (cost.input_gradient + cost.weight_gradient).value,
        static_cast<double>(cost.parameters.value) / 1e6,
        static_cast<double>(cost.activation.value) / 1e6);
  }
  return text;
}

}  // namespace pipewright::cli
