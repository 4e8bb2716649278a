#pragma once

// Index of a Timeline's spans by rank and action.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// Spans by rank and action, in the order of time: a rank may run an action several times, such as
/// "0STEP".
using SpansByAction = std::map<std::pair<int, std::string>, std::vector<const Span*>>;

/// Returns the index, whose pointers are valid as long as the Timeline's spans.
SpansByAction spans_by_action(const Timeline& timeline);

}  // namespace pipewright::plan
