#pragma once

// A traced job as it is looked at: a row for each worker, the slowest on top.

#include <optional>
#include <string>

#include "pipewright/plan/timeline/event_table.hpp"
#include "pipewright/trace/straggler/straggler_metrics.hpp"

namespace pipewright::trace {

/// "dp 1, stage 3 (rank 7)".
std::string worker_name(const JobLayout& layout, int worker);

/// All whole steps, at the trace's own times from the first on, or one of them from 0 on. Actions
/// are called as ours ("3F0", "3SEND_B1"), ranks after their workers, steps are marked. `order`:
/// workers, those on top first. Throws InputError for a step that is none of them.
plan::EventTable job_timeline(const JobSteps& steps, const std::vector<int>& order,
                              std::optional<int> only_step = {});

}  // namespace pipewright::trace
