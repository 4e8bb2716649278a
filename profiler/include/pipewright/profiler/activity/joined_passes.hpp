#pragma once

// Joins recorded passes over the sections of a model into one pass over the whole model.

#include <vector>

#include "pipewright/profiler/activity/work_report.hpp"

namespace pipewright::profiler {

/// Returns the passes one after the other: the times of each are shifted so that it begins when the
/// previous one ends. The actions of the first pass get stage 0, those of the second stage 1, and
/// so on. Labels and correlation ids are not changed, so all passes must come from one
/// ActivitySource and one WorkLog, in which these are unique.
RecordedPass joined(std::vector<RecordedPass> passes);

}  // namespace pipewright::profiler
