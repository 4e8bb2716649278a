#pragma once

// Forwards and backwards of microbatches where no range tells them: what lies between transfers,
// and which arrows lead from one to the other.

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

/// The groups that begin in [start, end), by time. Nothing where a forward leads to several
/// backwards that do not follow each other, or a backward comes from forwards that do not.
std::optional<std::vector<OperatorGroup>> operator_groups(const PipelineEvents& events,
                                                          double start, double end);

}  // namespace pipewright::trace
