#pragma once

// An order for any placement of stages that runs one stage after the other.

#include <vector>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// All microbatches of a stage before the next stage of its rank; back in reverse unless
/// `forward_only`.
Schedule stage_by_stage(const std::vector<int>& rank_of_stage, int microbatches, bool forward_only);

}  // namespace pipewright::plan
