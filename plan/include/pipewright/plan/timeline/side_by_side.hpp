#pragma once

// Detects spans of one row that ran at the same time, such as the two actions of a fused pair, so
// that a view can draw them in separate lanes.

#include <algorithm>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// Returns true if a span overlaps one that began no later, for more than half of the shorter one.
/// No clock error is that large.
inline bool are_side_by_side(const Span& first, const Span& second) {
  const Seconds both = std::min(first.end, second.end) - second.start;
  return both + both > std::min(first.end - first.start, second.end - second.start);
}

}  // namespace pipewright::plan
