#include "planning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <thread>

#include "pipewright/plan/deadlock.hpp"
#include "pipewright/plan/layer_weights.hpp"
#include "pipewright/plan/lower.hpp"
#include "pipewright/plan/schedule_request.hpp"
#include "pipewright/sim/memory_cap.hpp"
#include "pipewright/sim/simulator.hpp"
#include "schedule_check.hpp"

namespace pipewright::cli {
namespace {

constexpr std::size_t most_entries = 16;  // of a StructureCache: large ones take 200 MB each

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

/// The stages that share a weight: at least two, or none.
std::vector<int> tied_stages(const std::vector<plan::StageCost>& costs) {
  std::vector<int> tied;
  for (std::size_t stage = 0; stage < costs.size(); ++stage)
    if (costs[stage].tied > plan::Bytes{})
      tied.push_back(static_cast<int>(stage));
  return tied.size() < 2 ? std::vector<int>{} : tied;
}

/// A file's order, and the Program that it becomes. What is no sound order is bad input; that the
/// scenario's communicators deadlock is an answer, which the simulator gives.
CheckedSchedule schedule_from(const std::string& file, plan::LoweringOptions options) {
  const auto communicators = options.communicators;
  const auto transfers = options.transfers;
  options.communicators = plan::CommunicatorLayout::Edge;
  options.transfers = plan::TransferMode::Eager;
  try {
    CheckedSchedule checked = check_schedule(file, options);
    checked.program.communicators = communicators;
    checked.program.transfers = transfers;
    return checked;
  } catch (const plan::Infeasible& unsound) {
    throw plan::InputError(unsound.what());
  }
}

std::shared_ptr<const sim::Structure> structure_of(const plan::Pipeline& pipeline,
                                                   const plan::Schedule& schedule,
                                                   const plan::LoweringOptions& options,
                                                   StructureCache* cache) {
  const auto build = [&] {
    return std::make_shared<sim::Structure>(plan::lower(schedule, options));
  };
  if (cache == nullptr)
    return build();
  const StructureCache::Key key{pipeline, schedule, options.tied_stages};
  auto structure = cache->find(key);
  if (!structure) {
    structure = build();
    cache->insert(key, structure);
  }
  return structure;
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

Plan lay_out(const plan::Scenario& scenario, const plan::LayerCosts& costs,
             const std::string& file, StructureCache* cache) {
  check_costs(scenario, costs);
  const plan::Pipeline& wanted = scenario.pipeline;
  Plan plan;
  plan::ScheduleRequest request = plan::request_of(wanted);
  plan::LoweringOptions options = lowering_of(wanted, request);
  CheckedSchedule made;
  if (!file.empty()) {
    made = schedule_from(file, options);
    if (static_cast<int>(made.program.ranks.size()) != wanted.ranks ||
        made.program.microbatches != wanted.microbatches)
      throw plan::InputError(fmt::format(
          "{} is for {} ranks and {} microbatches, but pipeline.ranks is {} and "
          "pipeline.microbatches is {}",
          file, made.program.ranks.size(), made.program.microbatches, wanted.ranks,
          wanted.microbatches));
  }
  const int stages =
      file.empty() ? plan::stage_count(request) : plan::stage_count(made.program);
  plan.partition.boundaries = boundaries_by(
      wanted.partition, weights_by(wanted.partition, model_of(scenario), costs), stages);
  const bool trains = file.empty() ? !plan::is_forward_only(plan::make_schedule(request))
                                   : !plan::is_forward_only(made.schedule);
  plan::require_usable(costs, plan.partition, trains);
  plan.costs = sim::step_costs_of(
      scenario, plan::stage_costs(costs, plan.partition, training_memory(scenario)));
  if (file.empty()) {
    request.times = times_of(plan.costs.stages, scenario.cluster);
    plan.schedule = plan::make_schedule(request);
    options.tied_stages = tied_stages(plan.costs.stages);
    plan.structure = structure_of(wanted, plan.schedule, options, cache);
  } else {
    plan.schedule = std::move(made.schedule);
    plan.structure = std::make_shared<sim::Structure>(std::move(made.program));
  }
  sim::require_cap_above_standing(plan.program(), plan.costs.stages,
                                  scenario.cluster.device.memory);
  plan.partition.rank_of_stage = plan.program().placement.routes.front();
  return plan;
}

namespace {

/// What a plan's Program needs, and how far it is over the cap if it is.
struct Weighed {
  sim::Need need;
  std::optional<sim::OverCap> over;
};

Weighed weigh(const plan::Scenario& scenario, const Plan& plan) {
  sim::Simulator simulator(*plan.structure);
  sim::MemoryModel model(*plan.structure, scenario.pipeline.hand_over);
  const sim::Times& times = simulator.run(plan.costs);
  const sim::MemoryCurves& curves = model.curves(plan.costs, times);
  Weighed weighed{{{}, {times.iteration}},
                  sim::over_cap(*plan.structure, model, curves, plan.costs, times,
                                scenario.cluster.device.memory)};
  for (const sim::MemoryPeak& peak : curves.peaks)
    weighed.need.peak = std::max(weighed.need.peak, peak.held);
  return weighed;
}

/// Nothing when the scenario with that change cannot be planned.
std::optional<sim::Need> need_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                                 const std::string& change) {
  try {
    const plan::Scenario changed = plan::changed(scenario, change);
    return weigh(changed, lay_out(changed, costs)).need;
  } catch (const plan::InputError&) {
    return {};
  } catch (const plan::Infeasible&) {
    return {};
  }
}

}  // namespace

void check_memory(const plan::Scenario& scenario, const plan::LayerCosts& costs, const Plan& plan) {
  const auto over = weigh(scenario, plan).over;
  if (!over)
    return;
  const auto remedy = sim::smallest_change(
      sim::leaner_changes(scenario), scenario.cluster.device.memory,
      [&](const std::string& change) { return need_of(scenario, costs, change); });
  throw plan::Infeasible(sim::refusal(*over, remedy));
}

std::shared_ptr<const sim::Structure> StructureCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.key == key)
      return entry.structure;
  return nullptr;
}

void StructureCache::insert(Key key, std::shared_ptr<const sim::Structure> structure) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.structure == structure)
      return;
  entries_.push_back({std::move(key), std::move(structure)});
  if (entries_.size() > most_entries)
    entries_.erase(entries_.begin());
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
  for (std::size_t s = 0; s < plan.costs.stages.size(); ++s) {
    const plan::StageCost& cost = plan.costs.stages[s];
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
