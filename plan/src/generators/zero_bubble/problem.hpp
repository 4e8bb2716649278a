#pragma once

// The input of zb-auto's search, and the form of its orders.

#include <vector>

#include "pipewright/plan/costs/schedule_costs.hpp"
#include "pipewright/plan/schedules/action.hpp"

namespace pipewright::plan::zero_bubble {

struct Problem {
  int microbatches = 0;
  ScheduleCosts costs;  // by stage; one stage per rank
  /// By stage, in units: a forward adds 2, an input gradient and a weight gradient free 1 each.
  std::vector<int> memory_limits;

  int stage_count() const { return static_cast<int>(costs.stages.size()); }
};

/// The actions of one stage. Each kind runs its microbatches in order, so the m-th forward is that
/// of microbatch m and the kinds alone define the order.
using Order = std::vector<ActionKind>;

}  // namespace pipewright::plan::zero_bubble
