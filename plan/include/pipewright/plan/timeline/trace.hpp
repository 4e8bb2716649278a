#pragma once

// Chrome traces of Timelines.

#include <string>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// Writes Chrome Trace Event JSON, which Perfetto opens: one process per rank, one thread for each
/// of its rows and for the causes of its idle time, and memory as a counter. Its times are in
/// microseconds; `args` has the exact seconds and tells if a span is on the critical path.
std::string to_trace(const Timeline& timeline);
Timeline timeline_from_trace(const JsonDocument& document);

}  // namespace pipewright::plan
