#pragma once

// Spans of one row that ran at the same time, such as the two actions of a fused pair: whoever
// shows a row gives each its own place.

#include <algorithm>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// Whether a span ran beside one that began no later: for more than half of the shorter one, which
/// no clock errs.
inline bool are_side_by_side(const Span& first, const Span& second) {
  const Seconds both = std::min(first.end, second.end) - second.start;
  return both + both > std::min(first.end - first.start, second.end - second.start);
}

}  // namespace pipewright::plan
