#pragma once

// Finds the forwards and backwards of microbatches if no ranges mark them: from the operators
// between two transfers, and the arrows from forward to backward operators.

#include <optional>
#include <vector>

#include "pipewright/trace/explain/pipeline_events.hpp"

namespace pipewright::trace {

struct OperatorGroup {
  bool is_backward = false;
  int microbatch = 0;  // in the order of the forwards
  double start = 0;
  double end = 0;
};

/// Returns the groups that begin in [start, end), sorted by time. Returns nothing if a forward
/// leads to several non-consecutive backwards, or a backward comes from several non-consecutive
/// forwards.
std::optional<std::vector<OperatorGroup>> operator_groups(const PipelineEvents& events,
                                                          double start, double end);

}  // namespace pipewright::trace
