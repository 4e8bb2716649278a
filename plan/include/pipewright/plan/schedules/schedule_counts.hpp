#pragma once

// What a schedule keeps.

#include <vector>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// How many activations, of one microbatch on one stage each, every rank holds at most: from the
/// forward until the weight gradient is done. An inference keeps none but the one at work.
std::vector<int> peak_activations(const Schedule& schedule);
/// The same in the units of the zero-bubble papers: a forward adds 2, I and W free 1 each.
std::vector<int> peak_memory_units(const Schedule& schedule);

}  // namespace pipewright::plan
