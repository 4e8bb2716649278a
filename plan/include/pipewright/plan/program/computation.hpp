#pragma once

// The computation of a Program, without its data movement: its actions, and which kinds there are.

#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Returns the compute actions of a Program as the Schedule that it was lowered from.
Schedule schedule_of(const Program& program);

/// Returns true if the Program computes no weight gradient: an inference.
bool is_forward_only(const Program& program);

/// Returns true if each microbatch's gradients are reduced separately over the copies of its stage.
/// The reduction over copies then precedes the sum over microbatches (ZeRO stages 2 and 3).
bool scatters_microbatches(const Program& program);
/// Returns true if parameters are all-gathered before they are used (ZeRO stage 3).
bool gathers_parameters(const Program& program);

}  // namespace pipewright::plan
