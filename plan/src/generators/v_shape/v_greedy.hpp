#pragma once

// A V-shaped schedule in which each rank takes what can start first.

#include "v_shape.hpp"

namespace pipewright::plan {

/// A schedule for any costs and any limits on what the ranks keep, of at least one microbatch in
/// two stages each: every rank takes what can start first. A weight gradient begins when nothing
/// else can start within this `patience`, a part of its duration.
Schedule greedy_v(int ranks, int microbatches, const ScheduleCosts& costs,
                  const std::vector<Kept>& limits, double patience);

}  // namespace pipewright::plan
