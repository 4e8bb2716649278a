#pragma once

// What a schedule costs: its Program timed for stages of given times, and what it holds in memory.

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// The Program on ranks that are all joined by links of the given transfer time. Throws Infeasible
/// with the cycle when it deadlocks, InputError when the times are for another number of stages.
plan::Timeline timed(const plan::Program& program, const plan::ScheduleCosts& costs);

/// iteration_time, longest_stage_span and bubble; peak_activations and memory_units by rank;
/// weight_versions, slots by stage and receive_slots by rank.
plan::Json figures(const plan::Schedule& schedule, const plan::Program& program,
                   const plan::Timeline& timeline);

}  // namespace pipewright::loop
