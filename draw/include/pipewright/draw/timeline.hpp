#pragma once

// Draws timelines as a figure.

#include <string>
#include <vector>

#include "pipewright/draw/scene.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::draw {

/// Draws the timelines one above the other on a common time axis, with the memory of each rank
/// below its bars. Idle time by cause and the critical path are drawn if the timeline has them.
Scene timeline_scene(const std::vector<plan::Timeline>& timelines, const std::string& title);

}  // namespace pipewright::draw
