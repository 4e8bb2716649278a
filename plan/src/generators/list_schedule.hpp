#pragma once

// A list-scheduling heuristic that orders the actions for any placement of stages.

#include <vector>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Simulates ranks that choose their next action greedily, with backwards that take twice as long
/// as forwards. A free rank takes the oldest backward that is ready, or else the ready forward of
/// the oldest microbatch, deepest stage first. To bound memory, stage s of S starts no forward
/// while S - s microbatches, or `in_flight` of them, are between its forward and its backward. This
/// cannot deadlock, because the last stage with work can always proceed.
Schedule list_schedule(const std::vector<int>& rank_of_stage, int microbatches, int in_flight);

}  // namespace pipewright::plan
