#pragma once

// The schedule of a cut, by name: one of the catalogue, or one that Zero Bubble's search finds
// within so much memory, by what the cut's stages cost.

#include <string>
#include <string_view>

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::models {

/// ZB-2p (Qi et al., arXiv 2401.10241): zb-auto, where each rank may hold what 2 P microbatches
/// keep. The catalogue does not have it by name.
constexpr std::string_view searched_schedule = "zb-2p";

/// Throws InputError where nobody knows the name. `costs` are asked for only where
/// `orders_by_times`.
plan::ScheduleRequest schedule_request(const std::string& schedule, int ranks, int microbatches,
                                       int chunks, int group,
                                       const plan::ScheduleCosts& costs = {});
bool orders_by_times(const std::string& schedule);
/// Whether its ranks step by themselves, each when it is done, and validate the norm of the
/// gradients behind (Zero Bubble, section 4): then an iteration takes as long as the busiest rank's
/// span.
bool steps_by_rank(const std::string& schedule);

}  // namespace pipewright::models
