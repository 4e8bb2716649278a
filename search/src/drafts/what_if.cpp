#include "pipewright/search/drafts/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pipewright/models/estimates/estimated_costs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/quantity_text.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"
#include "pipewright/sim/causes/critical_path.hpp"
#include "pipewright/sim/causes/event_table.hpp"
#include "pipewright/sim/contention/contention.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/network/shared_links.hpp"
#include "pipewright/sim/scenario/device_memory.hpp"
#include "pipewright/sim/scenario/ranges.hpp"

namespace pipewright::search {
namespace {

constexpr std::size_t most_evaluators = 4;  // a large one takes 100 MB

constexpr const char* balanced = "profile";

std::string field_of(const std::string& assignment) {
  return assignment.substr(0, assignment.find('='));
}

/// Lists by stage, rank or microbatch, which are invalid once there is another number of them.
struct Lists {
  plan::PartitionChoice partition;
  std::vector<int> placement;
  std::vector<double> rank_speeds;
  std::vector<double> rank_memory;
  std::vector<double> microbatch_lengths;
};

Lists take_lists(plan::Scenario& scenario) {
  Lists lists{scenario.pipeline.partition, {}, {}, {}, {}};
  std::swap(lists.placement, scenario.pipeline.placement);
  if (std::holds_alternative<std::vector<int>>(lists.partition))
    scenario.pipeline.partition = balanced;
  std::swap(lists.rank_speeds, scenario.cluster.rank_speeds);
  std::swap(lists.rank_memory, scenario.cluster.rank_memory);
  std::swap(lists.microbatch_lengths, scenario.training.microbatch_lengths);
  return lists;
}

/// Returns true if the placement still fits the scenario's schedule and ranks.
bool fits(const std::vector<int>& placement, const plan::Pipeline& pipeline) {
  return !placement.empty() && pipeline.chunks == 0 &&
         plan::descriptor_of(pipeline.schedule).takes_placement() &&
         *std::max_element(placement.begin(), placement.end()) == pipeline.ranks - 1;
}

/// Restores the lists that still fit and that were not the changed field.
void give_back(Lists lists, plan::Scenario& scenario, const std::string& field) {
  if (field != "pipeline.placement" && fits(lists.placement, scenario.pipeline))
    scenario.pipeline.placement = std::move(lists.placement);
  const plan::ScheduleRequest request = request_of(scenario.pipeline);
  if (const auto* boundaries = std::get_if<std::vector<int>>(&lists.partition);
      boundaries != nullptr && field != "pipeline.partition" &&
      boundaries->size() == static_cast<std::size_t>(stage_count(request)) + 1 &&
      boundaries->back() == static_cast<int>(model_of(scenario).layers.size()))
    scenario.pipeline.partition = std::move(lists.partition);
  if (field != "cluster.rank_speeds" &&
      lists.rank_speeds.size() == static_cast<std::size_t>(scenario.pipeline.ranks))
    scenario.cluster.rank_speeds = std::move(lists.rank_speeds);
  if (field != "cluster.rank_memory_bytes" &&
      lists.rank_memory.size() == static_cast<std::size_t>(scenario.pipeline.ranks))
    scenario.cluster.rank_memory = std::move(lists.rank_memory);
  if (field != "training.microbatch_lengths" &&
      lists.microbatch_lengths.size() == static_cast<std::size_t>(microbatch_count(request)))
    scenario.training.microbatch_lengths = std::move(lists.microbatch_lengths);
}

double mean(double sum, std::size_t count) {
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

Figures figures_of(const Answer& answer) {
  Figures figures;
  figures.iteration_s = answer.times.iteration;
  figures.units_per_s = answer.throughput.units_per_s;
  figures.unit = answer.throughput.unit;
  const std::size_t ranks = answer.idle.by_cause.size();
  for (std::size_t cause = 0; cause < plan::idle_cause_count; ++cause) {
    double sum = 0;
    for (const auto& causes : answer.idle.by_cause)
      sum += causes[cause];
    figures.idle_s[cause] = mean(sum, ranks);
  }
  figures.bubble_s =
      mean(std::accumulate(answer.bubble_s.begin(), answer.bubble_s.end(), 0.0), ranks);
  figures.peak = std::ranges::max(totals_of(answer.devices));
  return figures;
}

}  // namespace

Draft changed(const Draft& draft, const std::string& assignment) {
  Draft next = draft;
  Lists lists = take_lists(next.scenario);
  for (const std::string& one : sim::expanded(assignment, draft.scenario.cluster.nodes > 1))
    next.scenario = plan::changed(next.scenario, one);
  if (field_of(assignment) == "pipeline.schedule" && !next.scenario.pipeline.schedule.own)
    plan::choose_schedule(next.scenario.pipeline, next.scenario.pipeline.schedule.name);
  give_back(std::move(lists), next.scenario, field_of(assignment));
  return next;
}

Draft with_boundary(const Draft& draft, const std::vector<int>& boundaries, int boundary,
                    int layer) {
  const auto stages = static_cast<int>(boundaries.size()) - 1;
  if (boundary < 1 || boundary >= stages)
    throw plan::InputError(fmt::format("there is no boundary {} to move: {} stages have {}",
                                       boundary, stages,
                                       stages < 2 ? "none" : fmt::format("1 to {}", stages - 1)));
  const auto at = static_cast<std::size_t>(boundary);
  if (layer <= boundaries[at - 1] || layer >= boundaries[at + 1])
    throw plan::InputError(fmt::format(
        "with boundary {} at layer {}, stage {} would have no layer: the boundary can be at {} to "
        "{}",
        boundary, layer, layer <= boundaries[at - 1] ? boundary - 1 : boundary,
        boundaries[at - 1] + 1, boundaries[at + 1] - 1));
  std::vector<int> moved = boundaries;
  moved[at] = layer;
  Draft next = draft;
  next.scenario.pipeline.partition = std::move(moved);
  return next;
}

plan::LayerCosts costs_of(const Draft& draft, std::vector<std::string>* notes) {
  const auto tell = [&](std::string note) {
    if (notes != nullptr)
      notes->push_back(std::move(note));
  };
  if (!draft.costs) {
    tell(models::estimate_note(draft.scenario));
    return models::estimated_costs(draft.scenario);
  }
  const int wanted = draft.scenario.training.microbatch_size;
  if (draft.costs->microbatch_size != wanted)
    tell(
        fmt::format("costs were measured for microbatches of {}; for {}, times and activations are "
                    "scaled linearly",
                    draft.costs->microbatch_size, wanted));
  return plan::scaled_to(*draft.costs, wanted);
}

/// The objects that are kept for one Structure.
struct WhatIf::Evaluator {
  Evaluator(std::shared_ptr<const sim::Structure> of)
      : structure(std::move(of)), simulator(*structure), causes(*structure), tables(*structure) {}

  sim::MemoryModel& memory_for(const sim::Holding& wanted) {
    if (!memory || !(holding == wanted)) {
      holding = wanted;
      memory.emplace(*structure, wanted);
    }
    return *memory;
  }

  std::shared_ptr<const sim::Structure> structure;
  sim::Simulator simulator;
  sim::IdleCauses causes;
  sim::EventTableMaker tables;
  sim::Holding holding{};
  std::optional<sim::MemoryModel> memory{};
};

WhatIf::WhatIf(int most_shared_events) : most_shared_events_(most_shared_events) {}
WhatIf::~WhatIf() = default;

WhatIf::Evaluator& WhatIf::evaluator_for(const std::shared_ptr<const sim::Structure>& structure) {
  const auto known =
      std::find_if(evaluators_.begin(), evaluators_.end(),
                   [&](const auto& evaluator) { return evaluator->structure == structure; });
  if (known != evaluators_.end()) {
    std::rotate(known, known + 1, evaluators_.end());
    return *evaluators_.back();
  }
  if (evaluators_.size() == most_evaluators)
    evaluators_.erase(evaluators_.begin());
  return *evaluators_.emplace_back(std::make_unique<Evaluator>(structure));
}

bool WhatIf::shares_links(const sim::ScenarioPlan& plan) const {
  return static_cast<double>(plan.structure->size()) * plan.costs.replicas <= most_shared_events_;
}

const sim::Times& WhatIf::times_of(Evaluator& evaluator, const sim::ScenarioPlan& plan) const {
  return shares_links(plan) ? evaluator.simulator.run_shared(plan.costs)
                            : evaluator.simulator.run(plan.costs);
}

std::variant<Answer, Refusal> WhatIf::answer(const Draft& draft) {
  try {
    std::vector<std::string> notes;
    plan::LayerCosts costs = costs_of(draft, &notes);
    Answer answer =
        simulated(draft.scenario, costs, sim::lay_out(draft.scenario, costs, &structures_));
    answer.costs = std::move(costs);
    answer.notes = std::move(notes);
    return answer;
  } catch (const plan::InputError& error) {
    return Refusal{error.what(), is_for_memory(draft)};
  } catch (const plan::Infeasible& error) {
    return Refusal{error.what()};
  }
}

/// Returns true if a plan that was rejected would be valid with unlimited memory.
bool WhatIf::is_for_memory(const Draft& draft) {
  if (!limits_memory(draft.scenario.cluster))
    return false;
  plan::Scenario endless = draft.scenario;
  endless.cluster = with_unlimited_memory(endless.cluster);
  try {
    sim::lay_out(endless, costs_of(draft), &structures_);
    return true;
  } catch (const plan::InputError&) {
    return false;
  } catch (const plan::Infeasible&) {
    return false;
  }
}

Answer WhatIf::simulated(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                         sim::ScenarioPlan plan) {
  require_usable(plan.costs, plan.program());
  Evaluator& evaluator = evaluator_for(plan.structure);
  const sim::Structure& structure = *plan.structure;
  const sim::Times& times = times_of(evaluator, plan);
  const sim::IdleTime& idle = evaluator.causes.of(times);
  sim::MemoryModel& memory = evaluator.memory_for(sim::holding_of(scenario, plan.program()));
  const sim::MemoryCurves& curves = memory.curves(plan.costs, times);

  Answer answer;
  answer.cap = least_memory(scenario.cluster);
  answer.devices = sim::device_memory(scenario, costs, plan, curves.peaks);
  answer.over = over_cap(structure, memory, curves, plan.costs, times,
                         plan::cluster_of_ranks(scenario), totals_of(answer.devices));
  answer.critical = critical_path(structure, times);
  answer.throughput = throughput_of(scenario, plan, times.iteration);
  if (!shares_links(plan))
    answer.bound = in_words(shared_link_overlaps(structure, plan.costs, times), structure);
  answer.table = evaluator.tables.table_of(times, {&idle, &curves, answer.critical});
  answer.places = evaluator.tables.places();
  for (int rank = 0; rank < static_cast<int>(idle.by_cause.size()); ++rank)
    answer.bubble_s.push_back(idle.of_rank(rank));
  answer.times = times;
  answer.idle = idle;
  answer.memory = curves;
  answer.plan = std::move(plan);
  answer.figures = figures_of(answer);
  return answer;
}

std::optional<sim::Need> WhatIf::need_of(const Draft& draft, const std::string& assignment) {
  try {
    const Draft next = changed(draft, assignment);
    const plan::LayerCosts costs = costs_of(next);
    const sim::ScenarioPlan plan = sim::lay_out(next.scenario, costs, &structures_);
    require_usable(plan.costs, plan.program());
    Evaluator& evaluator = evaluator_for(plan.structure);
    const sim::Times& times = times_of(evaluator, plan);
    sim::MemoryModel& memory = evaluator.memory_for(sim::holding_of(next.scenario, plan.program()));
    const sim::MemoryCurves& curves = memory.curves(plan.costs, times);
    const std::vector<plan::Bytes> needs = sim::needs_of(next.scenario, costs, plan, curves.peaks);
    return sim::Need{*std::max_element(needs.begin(), needs.end()),
                     {times.iteration},
                     sim::fits(needs, plan::cluster_of_ranks(next.scenario))};
  } catch (const plan::InputError&) {
    return {};
  } catch (const plan::Infeasible&) {
    return {};
  }
}

std::optional<sim::Remedy> WhatIf::remedy(const Draft& draft, const std::stop_token& stop) {
  if (!limits_memory(draft.scenario.cluster))
    return {};
  return sim::smallest_change(sim::leaner_changes(draft.scenario), [&](const std::string& change) {
    return stop.stop_requested() ? std::nullopt : need_of(draft, change);
  });
}

namespace {

/// Below any measurement's precision, and above rounding errors.
constexpr double least_seconds = 1e-9;

std::vector<std::string> parts_of(const Difference& difference, const Figures& before) {
  std::vector<std::string> parts;
  if (std::abs(difference.iteration_s) >= least_seconds)
    parts.push_back(fmt::format("iteration {} ({:+.1f} %)",
                                plan::time_difference_text(difference.iteration_s),
                                100 * difference.iteration_s / before.iteration_s));
  std::vector<std::string> causes;
  for (std::size_t cause = 0; cause < plan::idle_cause_count; ++cause)
    if (std::abs(difference.idle_s[cause]) >= least_seconds)
      causes.push_back(fmt::format("{} {}", plan::idle_causes()[cause],
                                   plan::time_difference_text(difference.idle_s[cause])));
  if (!causes.empty())
    parts.push_back(fmt::format("bubble {} ({})", plan::time_difference_text(difference.bubble_s),
                                fmt::join(causes, ", ")));
  if (difference.peak != plan::Bytes{})
    parts.push_back(
        fmt::format("peak {:+.3f} MB", static_cast<double>(difference.peak.value) / 1e6));
  return parts;
}

}  // namespace

Difference difference(const Figures& before, const Figures& after) {
  Difference difference;
  difference.iteration_s = after.iteration_s - before.iteration_s;
  difference.units_per_s = after.units_per_s - before.units_per_s;
  difference.bubble_s = after.bubble_s - before.bubble_s;
  difference.peak = after.peak - before.peak;
  for (std::size_t cause = 0; cause < plan::idle_cause_count; ++cause)
    difference.idle_s[cause] = after.idle_s[cause] - before.idle_s[cause];
  difference.parts = parts_of(difference, before);
  difference.text = difference.parts.empty() ? "no difference"
                                             : fmt::format("{}", fmt::join(difference.parts, ", "));
  return difference;
}

}  // namespace pipewright::search
