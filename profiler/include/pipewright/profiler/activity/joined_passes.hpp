#pragma once

// Joins passes over parts of a model into one pass over the whole model.

#include <vector>

#include "pipewright/profiler/activity/work_report.hpp"

namespace pipewright::profiler {

/// Moves each pass on the first one's clock to begin where the previous pass ended, so that gaps
/// between passes vanish. The actions of the first pass become those of stage 0, the second's of
/// stage 1, and so on. Labels and correlations stay: they are unique if the passes come from one
/// source and one log.
RecordedPass joined(std::vector<RecordedPass> passes);

}  // namespace pipewright::profiler
