#pragma once

// A Timeline whose ranks were measured with clocks of their own, on one clock.

#include "pipewright/plan/timeline/clock_offsets.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// What tells clocks apart: each transfer, and each member's start of a reduction, which no other
/// member's end can precede.
std::vector<Passage> passages_of(const Timeline& timeline);

/// All times by the clock of rank 0, or of the first rank of its group. When a rank began before
/// that clock's 0, all times move on so that none is negative; the length covers every span.
Timeline aligned(Timeline timeline, const ClockOffsets& clocks);

}  // namespace pipewright::plan
