#pragma once

// Shows kernels as a timeline that trace viewers can display.

#include <functional>
#include <string>

#include "pipewright/plan/timeline/event_table.hpp"
#include "pipewright/profiler/activity/work_report.hpp"

namespace pipewright::profiler {

/// Returns a pass as a timeline. For each rank, the track "pipeline" has its actions as the device
/// ran them, from the first to the last of their kernels; below them are the layers, and below
/// those the kernels, copies and memory sets. Work of other streams and unattributed work have
/// separate tracks, and "host" shows when the host was at each action. `layer_name` returns the
/// name of a layer.
plan::EventTable kernel_table(const RecordedPass& pass,
                              const std::function<std::string(int layer)>& layer_name);

}  // namespace pipewright::profiler
