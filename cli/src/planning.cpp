#include "planning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "pipewright/plan/computation.hpp"
#include "pipewright/plan/deadlock.hpp"
#include "pipewright/plan/layer_weights.hpp"
#include "pipewright/plan/lower.hpp"
#include "pipewright/plan/schedule_request.hpp"
#include "pipewright/sim/memory_cap.hpp"
#include "pipewright/sim/simulate.hpp"
#include "pipewright/sim/simulator.hpp"

namespace pipewright::cli {
namespace {

plan::Timeline predict(const plan::Scenario& scenario, const Plan& plan) {
  const auto outcome = sim::simulate(plan.program, sim::step_costs_of(scenario, plan.costs),
                                     scenario.pipeline.hand_over);
  if (const auto* deadlock = std::get_if<sim::Deadlock>(&outcome))
    throw plan::Infeasible(deadlock->cycle);
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

/// For the schedules that order their actions by them. A transfer is as long as the slowest between
/// neighbouring stages that lie on different nodes, or else on different ranks.
plan::ActionTimes times_of(const std::vector<plan::StageCost>& costs,
                           const plan::Cluster& cluster) {
  plan::ActionTimes times{{}, {}, {}, 0};
  const plan::Link& link = cluster.nodes > 1 ? cluster.between_nodes : cluster.within_node;
  for (const plan::StageCost& cost : costs) {
    times.forward.push_back(cost.forward.value);
    times.input_gradient.push_back(cost.input_gradient.value);
    times.weight_gradient.push_back(cost.weight_gradient.value);
    times.transfer =
        std::max(times.transfer, (plan::occupancy(link, cost.output) + link.latency).value);
  }
  return times;
}

plan::LoweringOptions lowering_of(const plan::Pipeline& pipeline,
                                  const plan::ScheduleRequest& request) {
  plan::LoweringOptions options = plan::lowering_of(request);
  options.communicators = pipeline.communicators;
  options.transfers = pipeline.transfers;
  options.blocking = pipeline.blocking;
  options.replicas = pipeline.replicas;
  options.overlap_reductions = pipeline.overlap_reductions;
  return options;
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

plan::Program sound_program(const plan::Scenario& scenario) {
  const plan::ScheduleRequest request = plan::request_of(scenario.pipeline);
  plan::Program program =
      plan::lower(plan::make_schedule(request), lowering_of(scenario.pipeline, request));
  if (const auto deadlock = plan::find_deadlock(plan::Dependencies(program)))
    throw plan::Infeasible(*deadlock);
  return program;
}

namespace {

/// The plan, whether or not it fits the devices.
Plan plan_for(const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  check_costs(scenario, costs);
  const plan::Pipeline& wanted = scenario.pipeline;
  Plan plan;
  plan::ScheduleRequest request = plan::request_of(wanted);
  plan.partition.boundaries =
      boundaries_by(wanted.partition, weights_by(wanted.partition, model_of(scenario), costs),
                    plan::stage_count(request));
  plan::require_usable(costs, plan.partition, /*training=*/false);  // times order some schedules
  plan.costs = plan::stage_costs(costs, plan.partition, plan::training_memory(scenario));
  request.times = times_of(plan.costs, scenario.cluster);
  plan.schedule = plan::make_schedule(request);
  plan.program = plan::lower(plan.schedule, lowering_of(wanted, request));
  plan::require_usable(costs, plan.partition, !plan::is_forward_only(plan.program));
  sim::require_cap_above_standing(plan.program, plan.costs, scenario.cluster.device.memory);
  plan.partition.rank_of_stage = plan.program.placement.routes.front();
  plan.predicted = predict(scenario, plan);
  return plan;
}

/// Nothing when the scenario with that change cannot be planned.
std::optional<sim::Need> need_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                                 const std::string& change) {
  try {
    const plan::Timeline predicted = plan_for(plan::changed(scenario, change), costs).predicted;
    const auto peaks = plan::peak_per_rank(predicted);
    return sim::Need{*std::max_element(peaks.begin(), peaks.end()), predicted.length};
  } catch (const plan::InputError&) {
    return {};
  } catch (const plan::Infeasible&) {
    return {};
  }
}

/// Memory 0 means that the scenario sets no limit.
void check_memory(const plan::Scenario& scenario, const plan::LayerCosts& costs, const Plan& plan) {
  const plan::Bytes cap = scenario.cluster.device.memory;
  const auto peaks = plan::peak_per_rank(plan.predicted);
  if (cap == plan::Bytes{} || *std::max_element(peaks.begin(), peaks.end()) <= cap)
    return;
  const sim::StepCosts step = sim::step_costs_of(scenario, plan.costs);
  const sim::Structure structure(plan.program);
  sim::Simulator simulator(structure);
  sim::MemoryModel model(structure, scenario.pipeline.hand_over);
  const sim::Times& times = simulator.run(step);
  const auto over =
      sim::over_cap(structure, model, model.curves(step, times), step, times, cap).value();
  const auto remedy = sim::smallest_change(
      sim::leaner_changes(scenario), cap,
      [&](const std::string& change) { return need_of(scenario, costs, change); });
  throw plan::Infeasible(sim::refusal(over, remedy));
}

}  // namespace

Plan make_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  Plan plan = plan_for(scenario, costs);
  check_memory(scenario, costs, plan);
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
