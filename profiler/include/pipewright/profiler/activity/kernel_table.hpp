#pragma once

// Kernels as a timeline that viewers of traces can show.

#include <functional>
#include <string>

#include "pipewright/plan/timeline/event_table.hpp"
#include "pipewright/profiler/activity/work_report.hpp"

namespace pipewright::profiler {

/// A pass as a timeline: of each rank the track "pipeline" with its actions as the device ran them,
/// from the first to the last of their kernels; below them the layers, and below those the kernels,
/// copies and sets. What other streams did, and what nobody has claimed, has tracks of its own, and
/// "host" says when the host was at each action. `layer_name`: of a layer.
plan::EventTable kernel_table(const RecordedPass& pass,
                              const std::function<std::string(int layer)>& layer_name);

}  // namespace pipewright::profiler
