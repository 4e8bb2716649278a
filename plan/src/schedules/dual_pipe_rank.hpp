#pragma once

// One rank of DualPipe and DualPipeV. A rank has two sides, each a stage with its own run of
// microbatches: the two directions of DualPipe, or the two arms of the V. Both schedules go through
// the same eight phases; `hop` of `hops` says how far the rank is from the end at which side 0
// starts.

#include <vector>

#include "pipewright/plan/action.hpp"

namespace pipewright::plan {

struct DualPipeSide {
  int stage = 0;
  int first_microbatch = 0;
};

/// `microbatches` on each side, at least 2 * hops.
std::vector<Action> dual_pipe_rank(const DualPipeSide& side_0, const DualPipeSide& side_1, int hop,
                                   int hops, int microbatches);

}  // namespace pipewright::plan
