#pragma once

// Timelines as a figure.

#include <string>
#include <vector>

#include "pipewright/draw/scene.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::draw {

/// Several timelines, one above the other on one time axis, with the memory of each rank below its
/// bars; idle time by its cause and the critical path where the timeline knows them.
Scene timeline_scene(const std::vector<plan::Timeline>& timelines, const std::string& title);

}  // namespace pipewright::draw
