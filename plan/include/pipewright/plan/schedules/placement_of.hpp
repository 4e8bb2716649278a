#pragma once

// The placement of a schedule's stages, derived from the ranks that have their actions.

#include "pipewright/plan/partition/placement.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Returns the placement according to the actions, with one route for each set of microbatches that
/// pass the stages on the same ranks. If two ranks have actions of one stage and microbatch, the
/// lower rank counts (`validate` rejects such a schedule); if none has, the rank is -1. Throws
/// InputError if a stage or microbatch number is so large that most of its actions must be missing.
Placement placement_of(const Schedule& schedule);

}  // namespace pipewright::plan
