#pragma once

// The question that zb-auto answers, and the form in which its parts pass answers around.

#include <vector>

#include "pipewright/plan/costs/schedule_costs.hpp"
#include "pipewright/plan/schedules/action.hpp"

namespace pipewright::plan::zero_bubble {

struct Problem {
  int microbatches = 0;
  ScheduleCosts costs;             // of each stage; one stage per rank
  std::vector<int> memory_limits;  // of each, in units: a forward adds 2, either gradient frees 1

  int stage_count() const { return static_cast<int>(costs.stages.size()); }
};

/// What one stage runs. Each kind runs its microbatches in order, so the m-th forward is that of
/// microbatch m and the kinds alone say everything.
using Order = std::vector<ActionKind>;

}  // namespace pipewright::plan::zero_bubble
