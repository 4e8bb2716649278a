#include <fmt/format.h>

#include <algorithm>

#include "closed_forms.hpp"
#include "generators/v_shape/v_backfill.hpp"
#include "generators/v_shape/v_greedy.hpp"
#include "generators/v_shape/v_improve.hpp"
#include "generators/v_shape/v_waves.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/v_schedules.hpp"

namespace pipewright::plan {
namespace {

double worst_of(const Waves& waves) {
  return *std::max_element(waves.idle.begin(), waves.idle.end());
}

/// Returns the waves with the least idle time on the worst rank. It tries all choices of what may
/// be delayed, and repeats each as long as the idle times of the previous attempt help.
std::optional<Waves> best_waves(int ranks, int microbatches, const ScheduleCosts& costs,
                                int limit) {
  std::optional<Waves> best;
  for (const bool of_way_down : {true, false})
    for (const bool of_forwards : {true, false}) {
      const auto construct = [&](const std::vector<double>& earlier) {
        return construct_waves(ranks, microbatches, costs, limit, {of_forwards, of_way_down},
                               earlier);
      };
      auto waves = construct({});
      while (waves) {
        auto again = construct(waves->idle);
        if (!again || worst_of(*again) >= worst_of(*waves))
          break;
        waves = std::move(again);
      }
      if (waves && (!best || worst_of(*waves) < worst_of(*best)))
        best = std::move(waves);
    }
  return best;
}

/// Returns the best schedule under a tight limit. A greedy order always fits. V-Half or V-Min often
/// fit as well, and their idle time is filled with what they left over.
Schedule within_tight_limit(int ranks, int microbatches, const ScheduleCosts& costs, int limit) {
  const std::vector<Kept> limits(static_cast<std::size_t>(ranks), Kept{limit, limit});
  Schedule best = improved(greedy_v(ranks, microbatches, costs, limits, 1), costs, limits);
  for (const Schedule& candidate :
       {make_v_half(ranks, microbatches, costs), make_v_min(ranks, microbatches, costs)}) {
    const auto peaks = peaks_of(candidate);
    if (!std::all_of(peaks.begin(), peaks.end(),
                     [&](const Kept& peak) { return peak.units <= limit; }))
      continue;
    Schedule filled = backfill(candidate, costs, limits);
    if (times_of(filled, costs).makespan < times_of(best, costs).makespan)
      best = std::move(filled);
  }
  return best;
}

}  // namespace

Schedule make_v_zb(int ranks, int microbatches, const ScheduleCosts& given,
                   std::optional<int> memory_units) {
  const ScheduleCosts costs = checked_v_costs("v-zb", ranks, microbatches, given);
  const int limit = memory_units.value_or(4 * ranks);
  if (limit < 4)
    throw InputError(
        fmt::format("v-zb: a limit of {} units asked for, the least is 4: one microbatch in both "
                    "stages of a rank",
                    limit));
  if (const auto waves = best_waves(ranks, microbatches, costs, limit))
    return improved(waves->schedule, costs, peaks_of(waves->schedule));
  return within_tight_limit(ranks, microbatches, costs, limit);
}

ScheduleDescriptor schedule::v_zb() {
  return {.name = "v-zb",
          .chunks = Chunks::Two,
          .takes = "`--costs`, by which it orders its actions; `--memory-units`, a limit per rank",
          .takes_memory_units = true,
          .orders_by_times = true,
          .steps_by_rank = true,
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_v_zb(r.ranks, r.microbatches, r.costs, r.memory_units)};
          },
          .bubble = no_bubble_in_a_v(),
          .bubble_is_of_span = true,
          .activations = {.words = "P",
                          .value = [](const ScheduleSizes& s) -> std::optional<double> {
                            if (!s.equal_times())  // otherwise half an activation may count twice
                              return {};
                            return s.ranks;
                          },
                          .is_limit = true}};
}

}  // namespace pipewright::plan
