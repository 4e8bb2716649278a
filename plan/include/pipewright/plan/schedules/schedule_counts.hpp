#pragma once

// Peak memory of a schedule, in saved activations.

#include <vector>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Returns the most activations (each of one microbatch on one stage) that each rank keeps at once.
/// An activation is kept from the forward until its weight gradient is done. In inference only the
/// current one counts.
std::vector<int> peak_activations(const Schedule& schedule);
/// Returns the same peak in the units of the zero-bubble papers: a forward adds 2, I and W free 1
/// each.
std::vector<int> peak_memory_units(const Schedule& schedule);

}  // namespace pipewright::plan
