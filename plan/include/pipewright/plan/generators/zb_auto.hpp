#pragma once

// zb-auto: zero-bubble orders for given times. The backward is split in two: the input gradient I,
// which the stage before waits for, and the weight gradient W, which nobody waits for and which can
// so fill what would be bubble. Which order is best depends on the times, the transfers and the
// memory, so it is searched for (after Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024).

#include <vector>

#include "pipewright/plan/costs/schedule_costs.hpp"
#include "pipewright/plan/quantity.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

struct ZeroBubblePlan {
  Schedule schedule;     // one stage per rank; F, I and W
  Seconds longest_span;  // over the stages, from the first start to the last end on one stage
  Seconds lower_bound;   // no schedule that keeps the microbatches in order has a shorter one
};

/// The schedule with the shortest longest span that was found. The search is bounded, so its time
/// does not explode with the sizes, and repeatable: the same costs give the same schedule. On small
/// problems it finds the optimum in practice, without proof unless the span is the lower bound.
///
/// `memory_units` is the most that a stage may hold: a forward adds 2, either gradient frees 1, so
/// that 2P is the memory of 1F1B. One limit for all stages, or one of each; none where it is empty.
/// Throws InputError when costs or limits are of another number of stages, when a time is negative
/// or no number, or when a limit holds no microbatch.
ZeroBubblePlan make_zb_auto(int stages, int microbatches, const ScheduleCosts& costs = {},
                            const std::vector<int>& memory_units = {});

}  // namespace pipewright::plan
