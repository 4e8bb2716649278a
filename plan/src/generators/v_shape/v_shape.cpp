#include "v_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "pipewright/plan/error.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {

int hop_of_leg(int leg, int rank, int ranks) {
  return leg * ranks + (leg % 2 == 0 ? rank : ranks - 1 - rank);
}

int rank_of_hop(int hop, int ranks) {
  const int leg = hop / ranks, passed = hop % ranks;
  return leg % 2 == 0 ? passed : ranks - 1 - passed;
}

Action action_of_hop(int hop, int microbatch, int ranks) {
  if (hop < 2 * ranks)
    return {ActionKind::Forward, hop, microbatch};
  return {ActionKind::InputGradient, 4 * ranks - 1 - hop, microbatch};
}

ScheduleCosts checked_v_costs(const char* schedule, int ranks, int microbatches,
                              const ScheduleCosts& costs) {
  check_sizes(schedule, ranks, microbatches, 2);
  check_costs(schedule, costs, 2 * ranks);
  PassTimes mean;
  for (const PassTimes& stage : costs.stages) {
    mean.forward += stage.forward;
    mean.input_gradient += stage.input_gradient;
    mean.weight_gradient += stage.weight_gradient;
  }
  const auto stages = static_cast<double>(costs.stages.size());
  for (Seconds* sum : {&mean.forward, &mean.input_gradient, &mean.weight_gradient})
    sum->value /= stages;
  return {.stages = {mean}, .transfer = costs.transfer};
}

double duration_of(const Action& action, const ScheduleCosts& costs) {
  const PassTimes& times = costs.of(action.stage);
  switch (action.kind) {
    case ActionKind::Forward:
    case ActionKind::Recompute:
      return times.forward.value;
    case ActionKind::InputGradient:
      return times.input_gradient.value;
    case ActionKind::WeightGradient:
      return times.weight_gradient.value;
    case ActionKind::Backward:
      return (times.input_gradient + times.weight_gradient).value;
  }
  assert(false);
  return 0;
}

std::vector<Kept> peaks_of(const Schedule& schedule) {
  std::vector<Kept> peaks;
  for (const auto& actions : schedule.ranks) {
    Kept now;
    Kept peak;
    for (const Action& action : actions) {
      now += kept_by(action.kind);
      peak = {std::max(peak.units, now.units), std::max(peak.whole, now.whole)};
    }
    peaks.push_back(peak);
  }
  return peaks;
}

HopEnds::HopEnds(int ranks, int microbatches) : ranks_(ranks), ends_(index(0, microbatches), -1) {}

void HopEnds::clear() { std::fill(ends_.begin(), ends_.end(), -1); }

StartTimes start_times(const Schedule& schedule, const ScheduleCosts& costs) {
  const int ranks = static_cast<int>(schedule.ranks.size());
  HopEnds ends(ranks, schedule.microbatches);
  StartTimes starts(schedule.ranks.size());
  std::vector<double> free_at(schedule.ranks.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
      while (starts[rank].size() < schedule.ranks[rank].size()) {
        const Action& action = schedule.ranks[rank][starts[rank].size()];
        const int hop = hop_of(action, ranks);
        const bool is_hop = action.kind != ActionKind::WeightGradient;
        if (is_hop && !ends.can_start(hop, action.microbatch))
          break;
        const double ready = is_hop ? ends.ready(hop, action.microbatch, costs.transfer) : 0;
        starts[rank].push_back(std::max(free_at[rank], ready));
        free_at[rank] = starts[rank].back() + duration_of(action, costs);
        if (is_hop)
          ends.set(hop, action.microbatch, free_at[rank]);
        progress = true;
      }
  }
  return starts;
}

Times times_of(const Schedule& schedule, const ScheduleCosts& costs) {
  const StartTimes starts = start_times(schedule, costs);
  Times times;
  for (std::size_t rank = 0; rank < starts.size(); ++rank) {
    const auto& actions = schedule.ranks[rank];
    assert(starts[rank].size() == actions.size());
    const double end = starts[rank].back() + duration_of(actions.back(), costs);
    times.makespan = std::max(times.makespan, end - starts[rank].front());
    times.end = std::max(times.end, end);
  }
  return times;
}

}  // namespace pipewright::plan
