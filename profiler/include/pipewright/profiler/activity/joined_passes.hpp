#pragma once

// Passes over parts of a model, as if they were one pass over all of it.

#include <vector>

#include "pipewright/profiler/activity/work_report.hpp"

namespace pipewright::profiler {

/// Each begins, on the clock of the first, where the one before has ended: what lay between them is
/// left out. Their actions are those of stage 0, 1, …, as they are the first pass, the second, ….
/// Labels and correlations stay: one source and one log give each once.
RecordedPass joined(std::vector<RecordedPass> passes);

}  // namespace pipewright::profiler
