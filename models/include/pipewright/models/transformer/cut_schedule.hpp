#pragma once

// The schedule of a cut, by name: one of the catalogue, or one that Zero Bubble's search finds
// within so much memory, by what the cut's stages cost.

#include <string>

#include "pipewright/plan/generators/schedule_catalogue.hpp"

namespace pipewright::models {

/// By its name in the catalogue, or by that of a memory limit of it ("zb-2p"). Throws InputError
/// where nobody knows the name.
const plan::ScheduleDescriptor& cut_schedule(const std::string& name);
/// Throws InputError likewise. `costs` are asked for only where the schedule orders its actions by
/// times.
plan::ScheduleRequest schedule_request(const std::string& name, int ranks, int microbatches,
                                       int chunks, int group,
                                       const plan::ScheduleCosts& costs = {});

}  // namespace pipewright::models
