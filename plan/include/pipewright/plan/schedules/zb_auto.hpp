#pragma once

// zb-auto: zero-bubble orders for given times. The backward is split in two: the input gradient I,
// which the stage before waits for, and the weight gradient W, which nobody waits for and which can
// so fill what would be bubble. Which order is best depends on the times, the transfers and the
// memory, so it is searched for (after Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024).

#include <vector>

#include "pipewright/plan/quantity.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Every list holds one value for all stages, or one for each.
struct ZeroBubbleCosts {
  std::vector<Seconds> forward;
  std::vector<Seconds> input_gradient;
  std::vector<Seconds> weight_gradient;
  Seconds transfer;  // of an activation or a gradient between neighbours; takes no compute time
  /// The most a stage may hold, in units: a forward adds 2, either gradient frees 1. A limit of
  /// 2P is the memory of 1F1B. Empty: no limit.
  std::vector<int> memory_units;
};

struct ZeroBubblePlan {
  Schedule schedule;     // one stage a rank; F, I and W
  Seconds longest_span;  // over the stages, from the first start to the last end on one stage
  Seconds lower_bound;   // no schedule that keeps the microbatches in order has a shorter one
};

/// The schedule with the shortest longest span that was found. The search is bounded, so its time
/// does not explode with the sizes, and repeatable: the same costs give the same schedule. On small
/// problems it finds the optimum in practice, without proof unless the span is the lower bound.
/// Throws InputError when a list has neither one value nor one a stage, when a time is negative or
/// no number, or when a limit holds no microbatch.
ZeroBubblePlan make_zb_auto(int stages, int microbatches, const ZeroBubbleCosts& costs);

}  // namespace pipewright::plan
