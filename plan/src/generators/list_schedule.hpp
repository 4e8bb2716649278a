#pragma once

// An order that the ranks find for themselves, for any placement of stages.

#include <vector>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Lets the ranks choose for themselves, backwards taking twice as long as forwards: whenever one
/// is free it takes the oldest backward that is ready, or else the ready forward of the oldest
/// microbatch, the deepest stage first. Stage s of S starts no forward while S - s microbatches, or
/// `in_flight` of them, are between its forward and its backward, so that memory stays bounded.
/// That never blocks for good: the last stage with work can always go on.
Schedule list_schedule(const std::vector<int>& rank_of_stage, int microbatches, int in_flight);

}  // namespace pipewright::plan
