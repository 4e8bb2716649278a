#pragma once

// Checks of sizes and costs that all generators share.

#include <string>

#include "pipewright/plan/costs/schedule_costs.hpp"

namespace pipewright::plan {

/// Throws InputError that names the schedule if there is no rank or no microbatch, or if the number
/// of actions would overflow.
void check_sizes(const char* schedule, int ranks, int microbatches, int chunks = 1);

/// Throws InputError that names the schedule if the costs are neither one for all stages nor one
/// per stage, or if a time is negative or not finite.
void check_costs(const char* schedule, const ScheduleCosts& costs, int stages);

/// Returns the nearest multiples of `unit` around `wrong` that are at least `least`, such as "8 or
/// 12".
std::string nearest_multiples(int wrong, int unit, int least);

/// Returns the microbatches per round of torch's interleaved schedules, M / max(1, M div P). Throws
/// InputError with the nearest numbers that fit if the rounds would be uneven.
int round_size(const char* schedule, int ranks, int microbatches);

}  // namespace pipewright::plan
