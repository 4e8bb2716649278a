#pragma once

// A greedy V-shaped schedule in which each rank runs the action that can start first.

#include "v_shape.hpp"

namespace pipewright::plan {

/// Builds a schedule for any costs and any limits on what the ranks keep; the limits must allow at
/// least one microbatch in two stages. Every rank runs the action that can start first. A weight
/// gradient begins only if no other action can start within `patience`, given as a fraction of the
/// weight gradient's duration.
Schedule greedy_v(int ranks, int microbatches, const ScheduleCosts& costs,
                  const std::vector<Kept>& limits, double patience);

}  // namespace pipewright::plan
