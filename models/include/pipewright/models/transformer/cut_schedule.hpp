#pragma once

// The schedule of a cut, by name: one of the catalog, or one that Zero Bubble's search finds
// within a memory limit, given the costs of the cut's stages.

#include <string>

#include "pipewright/plan/generators/schedule_catalog.hpp"

namespace pipewright::models {

/// Returns the schedule with this name in the catalog, or that with a memory limit of this name
/// ("zb-2p"). Throws InputError if the name is unknown.
const plan::ScheduleDescriptor& cut_schedule(const std::string& name);
/// Returns a request for the schedule. Throws InputError if the name is unknown. `costs` are used
/// only if the schedule orders its actions by times.
plan::ScheduleRequest schedule_request(const std::string& name, int ranks, int microbatches,
                                       int chunks, int group,
                                       const plan::ScheduleCosts& costs = {});

}  // namespace pipewright::models
