#pragma once

// Proof that a Schedule is complete and can run in its order.

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Proves that every rank can run its list to the end, strictly in order. Each microbatch must pass
/// each stage exactly once forward and once backward (as B, or as I and then W), on one rank, and
/// no rank may wait forever. A schedule without any backward (inference) is valid as well. Throws
/// InputError that names rank, action and reason, with all errors together.
void validate(const Schedule& schedule);

}  // namespace pipewright::plan
