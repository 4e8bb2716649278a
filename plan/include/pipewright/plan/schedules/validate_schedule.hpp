#pragma once

// The proof that a Schedule is complete and can be run in its order.

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Proves that every rank's list can be run to its end: each microbatch passes each stage exactly
/// once forward and once backward (as B, or as I and then W), on one rank; and no rank waits for
/// ever, when a rank runs its list strictly in order. A schedule without any backward is sound as
/// well: inference. Throws InputError that names rank, action and reason, all errors at once.
void validate(const Schedule& schedule);

}  // namespace pipewright::plan
