#pragma once

// What a Program computes, apart from all that moves data: its actions, and what kind they are.

#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// The compute actions of a Program as the Schedule that it was lowered from.
Schedule schedule_of(const Program& program);

/// Whether no weight gradient is computed at all: an inference.
bool is_forward_only(const Program& program);

/// Whether the gradients of each microbatch are summed over the copies of its stage by themselves:
/// a sum over copies comes before that over microbatches then (ZeRO stages 2 and 3).
bool scatters_microbatches(const Program& program);
/// Whether parameters are gathered before they are computed with (ZeRO stage 3).
bool gathers_parameters(const Program& program);

}  // namespace pipewright::plan
