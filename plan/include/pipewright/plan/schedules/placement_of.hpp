#pragma once

// Where the stages of a schedule lie, read off from the ranks that have their actions.

#include "pipewright/plan/partition/placement.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Which rank runs which stage, as the actions say: a route for each set of microbatches that pass
/// the stages on the same ranks. Where two ranks have actions of one stage and microbatch, the
/// lower rank (`validate` refuses such a schedule); -1 where none has. Throws InputError when a
/// stage or microbatch has so large a number that most of its actions must be missing.
Placement placement_of(const Schedule& schedule);

}  // namespace pipewright::plan
