#include "v_improve.hpp"

#include "v_backfill.hpp"
#include "v_greedy.hpp"

namespace pipewright::plan {

Schedule improved(Schedule schedule, const ScheduleCosts& costs, const std::vector<Kept>& limits) {
  const int ranks = static_cast<int>(schedule.ranks.size());
  Schedule best = backfill(std::move(schedule), costs, limits);
  for (const double patience : {0.5, 1.0}) {
    const Schedule greedy = greedy_v(ranks, best.microbatches, costs, limits, patience);
    Schedule candidate = backfill(greedy, costs, limits);
    const Times now = times_of(best, costs);
    const Times then = times_of(candidate, costs);
    if (then.makespan < now.makespan && then.end <= now.end)
      best = std::move(candidate);
  }
  return best;
}

}  // namespace pipewright::plan
