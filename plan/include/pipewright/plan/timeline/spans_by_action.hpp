#pragma once

// The spans of a Timeline, found by what they show.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// By rank and action, in the order of time: a rank may run an action several times, as "0STEP".
using SpansByAction = std::map<std::pair<int, std::string>, std::vector<const Span*>>;

/// Valid as long as the Timeline's spans.
SpansByAction spans_by_action(const Timeline& timeline);

}  // namespace pipewright::plan
