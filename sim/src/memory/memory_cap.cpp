#include "pipewright/sim/memory/memory_cap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/quantity_text.hpp"

namespace pipewright::sim {
namespace {

using plan::Bytes;

/// Returns the last action of the rank that has begun by then.
std::string action_at(const Structure& structure, const Times& times, int rank, double time) {
  std::string action;
  for (int event = 0; event < structure.size(); ++event) {
    const auto& own = structure.events()[event];
    if (own.rank == rank && plan::is_compute(own.instruction->kind) && times[event].start <= time)
      action = to_string(*own.instruction);
  }
  return action;
}

std::optional<int> furthest_above(const std::vector<Bytes>& needs, const plan::Cluster& cluster) {
  std::optional<int> found;
  Bytes most;
  for (int rank = 0; rank < static_cast<int>(needs.size()); ++rank) {
    const Bytes cap = memory_of(cluster, rank);
    const Bytes above = needs[static_cast<std::size_t>(rank)] - cap;
    if (cap == Bytes{} || above <= most)
      continue;
    found = rank;
    most = above;
  }
  return found;
}

}  // namespace

bool fits(const std::vector<Bytes>& needs, const plan::Cluster& cluster) {
  return !furthest_above(needs, cluster);
}

std::optional<MemoryExcess> over_cap(const Structure& structure, const MemoryModel& model,
                                     const MemoryCurves& curves, const StepCosts& costs,
                                     const Times& times, const plan::Cluster& cluster,
                                     const std::vector<Bytes>& needs) {
  const std::optional<int> fullest = furthest_above(needs, cluster);
  if (!fullest)
    return {};
  const int rank = *fullest;
  const MemoryPeak& peak = curves.peaks[static_cast<std::size_t>(rank)];
  MemoryExcess over{.rank = rank,
                    .peak = needs[static_cast<std::size_t>(rank)],
                    .cap = memory_of(cluster, rank),
                    .time = peak.time,
                    .action = action_at(structure, times, rank, peak.time),
                    .largest = model.holders(costs, times, rank, peak.time)};
  constexpr std::size_t shown = 3;
  if (over.largest.size() > shown)
    over.largest.resize(shown);
  return over;
}

std::string to_string(const MemoryExcess& over) {
  std::vector<std::string> holders;
  for (const Holder& holder : over.largest)
    holders.push_back(fmt::format("{} {}", holder.name, plan::bytes_text(holder.bytes)));
  return fmt::format("rank {} needs {} at {} ({}), but its device has {}: mostly {}", over.rank,
                     plan::bytes_text(over.peak), over.action, plan::time_text(over.time),
                     plan::bytes_text(over.cap), fmt::join(holders, ", "));
}

void require_cap_above_standing(const plan::Program& program,
                                const std::vector<plan::StageCost>& costs,
                                const plan::Cluster& cluster) {
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    const Bytes cap = memory_of(cluster, rank);
    if (cap == Bytes{})
      continue;
    Bytes parameters, gradients, state;
    for (const int stage : program.placement.stages_on(rank)) {
      const plan::StageCost& cost = costs[static_cast<std::size_t>(stage)];
      parameters += standing_parameters(cost);
      gradients += standing_gradients(cost);
      state += cost.optimizer_state;
    }
    const Bytes sum = parameters + gradients + state;
    if (sum > cap)
      throw plan::InputError(fmt::format(
          "rank {} holds {} before any activation (parameters {}, gradients {}, optimizer state "
          "{}), but its device has {}",
          rank, plan::bytes_text(sum), plan::bytes_text(parameters), plan::bytes_text(gradients),
          plan::bytes_text(state), plan::bytes_text(cap)));
  }
}

namespace {

/// Returns the activations kept by the schedule's closed form, or infinity if it has none.
double saved_activations(const plan::ScheduleDescriptor& schedule, const plan::Pipeline& pipeline) {
  const auto& kept = schedule.activations.value;
  const auto found = kept ? kept({.ranks = pipeline.ranks,
                                  .microbatches = pipeline.microbatches,
                                  .chunks = std::max(1, pipeline.chunks)})
                          : std::nullopt;
  return found.value_or(std::numeric_limits<double>::infinity());
}

/// Returns true if the schedule keeps fewer activations and trains the same weights.
bool keeps_less(const plan::ScheduleDescriptor& schedule, const plan::Pipeline& pipeline) {
  return !schedule.is_forward_only && !schedule.is_data_parallel && !schedule.step_every &&
         saved_activations(schedule, pipeline) <
             saved_activations(plan::descriptor_of(pipeline.schedule), pipeline);
}

}  // namespace

std::vector<std::string> leaner_changes(const plan::Scenario& scenario) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const plan::Training& training = scenario.training;
  std::vector<std::string> changes;
  if (training.recompute == plan::RecomputeMode::None)
    changes.emplace_back("training.recompute=selective");
  if (training.recompute != plan::RecomputeMode::Full)
    changes.emplace_back("training.recompute=full");
  if (training.zero == 0 && pipeline.replicas > 1)
    changes.emplace_back("training.zero=1");
  for (const plan::ScheduleDescriptor& schedule : plan::schedules())
    if (keeps_less(schedule, pipeline))
      changes.push_back(fmt::format("pipeline.schedule={}", schedule.name));
  if (pipeline.chunks > 1)
    changes.push_back(fmt::format("pipeline.chunks={}", pipeline.chunks - 1));
  const plan::Cluster& cluster = scenario.cluster;
  if (2 * plan::ranks_of_job(pipeline) <= device_count(cluster))
    changes.push_back(fmt::format("pipeline.ranks={}", 2 * pipeline.ranks));
  return changes;
}

std::optional<Remedy> smallest_change(
    const std::vector<std::string>& changes,
    const std::function<std::optional<Need>(const std::string& assignment)>& evaluate) {
  std::optional<Remedy> best;
  for (const std::string& change : changes) {
    const auto need = evaluate(change);
    if (need && need->fits && (!best || need->iteration < best->need.iteration))
      best = Remedy{change, *need};
  }
  return best;
}

std::string refusal(const MemoryExcess& over, const std::optional<Remedy>& remedy) {
  if (!remedy)
    return to_string(over) + "; no single change that was tried fits";
  return fmt::format("{}; {} fits, with {} and {} per iteration", to_string(over),
                     remedy->assignment, plan::bytes_text(remedy->need.peak),
                     plan::time_text(remedy->need.iteration));
}

}  // namespace pipewright::sim
