#include "closed_forms.hpp"
#include "generators/v_shape/v_block.hpp"
#include "generators/v_shape/v_improve.hpp"
#include "pipewright/plan/generators/v_schedules.hpp"

namespace pipewright::plan {
namespace {

/// Returns the block of V-Min, in which a microbatch never waits between hops. If P is divisible by
/// three, input gradients start two slots later, so that no two hops collide modulo six.
Block v_min_block(int ranks) {
  const int pause = ranks % 3 == 0 ? 2 : 0;
  Block block;
  for (int r = 0; r < ranks; ++r)
    block.push_back({r, 2 * ranks - 1 - r, 2 * ranks + pause + r, 4 * ranks - 1 + pause - r});
  return block;
}

}  // namespace

Schedule make_v_min(int ranks, int microbatches, const ScheduleCosts& given) {
  const ScheduleCosts costs = checked_v_costs("v-min", ranks, microbatches, given);
  const Schedule repeated = repeat_block(v_min_block(ranks), microbatches);
  return improved(repeated, costs, peaks_of(repeated));
}

ScheduleDescriptor schedule::v_min() {
  return {.name = "v-min",
          .aliases = {"ZBV-Min"},
          .chunks = Chunks::Two,
          .takes = "`--costs`, by which it orders its actions",
          .orders_by_times = true,
          .steps_by_rank = true,
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_v_min(r.ranks, r.microbatches, r.costs)};
          },
          .bubble = part_of_flush_bubble("2(P-1)(F+B)/3", 1.5, 1),
          .activations = {.words = "floor((P+4)/3)",
                          .value = [](const ScheduleSizes& s) { return (s.ranks + 4) / 3; },
                          .is_limit = true}};
}

}  // namespace pipewright::plan
