#pragma once

// zb-auto: zero-bubble orders for given times. The backward is split into the input gradient I,
// which the previous stage needs, and the weight gradient W, which no other stage needs and which
// can therefore fill bubbles. The best order depends on the times, the transfers and the memory, so
// it is searched for (after Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024).

#include <vector>

#include "pipewright/plan/costs/schedule_costs.hpp"
#include "pipewright/plan/quantity.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// The schedule that zb-auto found, with the quality of the result.
struct ZeroBubblePlan {
  Schedule schedule;  // one stage per rank; F, I and W
  /// Maximum over the stages, from the first start to the last end on one stage.
  Seconds longest_span;
  Seconds lower_bound;  // no schedule that keeps the microbatches in order has a shorter one
};

/// Returns the schedule with the shortest longest span that was found. The search is bounded, so
/// that its time stays moderate for large sizes, and deterministic: the same costs give the same
/// schedule. On small problems it finds the optimum in practice, without proof unless the span
/// equals the lower bound.
///
/// `memory_units` limits what a stage may hold: a forward adds 2, either gradient frees 1, so 2P is
/// the memory of 1F1B. It has one limit for all stages or one per stage; empty means unlimited.
/// Throws InputError if costs or limits are for another number of stages, if a time is negative or
/// not finite, or if a limit is too small for one microbatch.
ZeroBubblePlan make_zb_auto(int stages, int microbatches, const ScheduleCosts& costs = {},
                            const std::vector<int>& memory_units = {});

}  // namespace pipewright::plan
