#pragma once

// Aligns a Timeline whose ranks were measured with different clocks to one clock.

#include "pipewright/plan/timeline/clock_offsets.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// Returns the observations that relate clocks: each transfer, and for each reduction the start of
/// every member, which must precede the end of every other member.
std::vector<ClockObservation> passages_of(const Timeline& timeline);

/// Converts all times to the clock of rank 0, or of the first rank of each group. If a rank began
/// before that clock's 0, all times are shifted so that none is negative. The length covers every
/// span.
Timeline aligned(Timeline timeline, const ClockOffsets& clocks);

}  // namespace pipewright::plan
