#include "closed_forms.hpp"
#include "generators/v_shape/v_block.hpp"
#include "generators/v_shape/v_improve.hpp"
#include "pipewright/plan/generators/v_schedules.hpp"

namespace pipewright::plan {
namespace {

/// Returns the block of V-Half. Forwards go down in every second slot and up in every slot, and so
/// do input gradients. For even P the input gradients start three slots later, so that no two hops
/// collide modulo six.
Block v_half_block(int ranks) {
  const int pause = ranks % 2 == 0 ? 3 : 0;
  Block block;
  for (int r = 0; r < ranks; ++r)
    block.push_back(
        {2 * r, 3 * ranks - 2 - r, 3 * ranks - 1 + pause + 2 * r, 6 * ranks - 2 + pause - r});
  return block;
}

}  // namespace

Schedule make_v_half(int ranks, int microbatches, const ScheduleCosts& given) {
  const ScheduleCosts costs = checked_v_costs("v-half", ranks, microbatches, given);
  const Schedule repeated = repeat_block(v_half_block(ranks), microbatches);
  return improved(repeated, costs, peaks_of(repeated));
}

ScheduleDescriptor schedule::v_half() {
  return {.name = "v-half",
          .aliases = {"ZBV-Half"},
          .chunks = Chunks::Two,
          .takes = "`--costs`, by which it orders its actions",
          .orders_by_times = true,
          .steps_by_rank = true,
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_v_half(r.ranks, r.microbatches, r.costs)};
          },
          .bubble = part_of_flush_bubble("(P-1)(F+B)/2", 2, 2),
          .activations = {.words = "floor(P/2) + 1",
                          .value = [](const ScheduleSizes& s) { return s.ranks / 2 + 1; },
                          .is_limit = true}};
}

}  // namespace pipewright::plan
