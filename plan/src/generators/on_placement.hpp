#pragma once

// An order for any placement of stages, in which a rank runs its stages one after the other.

#include <vector>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Returns a schedule that runs all microbatches of a stage before the next stage of its rank. The
/// backwards run in reverse, unless `forward_only` leaves them out.
Schedule stage_by_stage(const std::vector<int>& rank_of_stage, int microbatches, bool forward_only);

}  // namespace pipewright::plan
