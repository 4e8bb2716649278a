#pragma once

// Timelines as Chrome traces.

#include <string>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// Chrome Trace Event JSON: opens in Perfetto, one process per rank, one thread for each of its
/// rows and for the causes of its idle time, memory as a counter. Times there are microseconds; the
/// exact seconds stand in `args`, and whether a span is on the critical path.
std::string to_trace(const Timeline& timeline);
Timeline timeline_from_trace(const JsonDocument& document);

}  // namespace pipewright::plan
