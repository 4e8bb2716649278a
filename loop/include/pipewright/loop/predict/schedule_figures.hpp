#pragma once

// Figures of a schedule: its Program timed with given stage times, and the memory it needs.

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// Simulates the Program on ranks that are all joined by links with the given transfer time. Throws
/// Infeasible with the cycle if it deadlocks, and InputError if the times are for another number of
/// stages.
plan::Timeline timed(const plan::Program& program, const plan::ScheduleCosts& costs);

/// Returns iteration_time, longest_stage_span and bubble; peak_activations and memory_units by
/// rank; weight_versions, slots by stage and receive_slots by rank.
plan::Json figures(const plan::Schedule& schedule, const plan::Program& program,
                   const plan::Timeline& timeline);

}  // namespace pipewright::loop
