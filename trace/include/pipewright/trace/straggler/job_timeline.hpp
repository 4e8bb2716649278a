#pragma once

// Arranges a traced job for display: a row for each worker, the slowest on top.

#include <optional>
#include <string>

#include "pipewright/plan/timeline/event_table.hpp"
#include "pipewright/trace/straggler/straggler_metrics.hpp"

namespace pipewright::trace {

/// Returns a worker's name, such as "dp 1, stage 3 (rank 7)".
std::string worker_name(const JobLayout& layout, int worker);

/// Returns all whole steps at the times of the trace, or only one of them with times from 0.
/// Actions have Pipewright's names ("3F0", "3SEND_B1"), ranks those of their workers, and steps are
/// marked. `order` lists the workers from top to bottom. Throws InputError if the wanted step is
/// not among them.
plan::EventTable job_timeline(const JobSteps& steps, const std::vector<int>& order,
                              std::optional<int> only_step = {});

}  // namespace pipewright::trace
