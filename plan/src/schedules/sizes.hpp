#pragma once

// What generators refuse: sizes and costs that no schedule can have.

#include <string>

#include "pipewright/plan/costs/schedule_costs.hpp"

namespace pipewright::plan {

/// Throws InputError naming the schedule when there is no rank or no microbatch, or so many that
/// the number of actions overflows.
void check_sizes(const char* schedule, int ranks, int microbatches, int chunks = 1);

/// Throws InputError naming the schedule when there is neither one cost for all stages nor one of
/// each, or a time is negative or no number.
void check_costs(const char* schedule, const ScheduleCosts& costs, int stages);

/// "8 or 12": the numbers nearest to `wrong` that are at least `least` and multiples of `unit`.
std::string nearest_multiples(int wrong, int unit, int least);

/// Microbatches per round of torch's interleaved schedules: M / max(1, M div P). Throws InputError
/// with the nearest numbers that fit when the rounds would be uneven.
int round_size(const char* schedule, int ranks, int microbatches);

}  // namespace pipewright::plan
