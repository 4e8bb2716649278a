#pragma once

// From schedule to schedule: how its backwards are divided, ordered and prepared.

#include <vector>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Each B as I and, right behind it, W. A fused pair with a B comes apart.
Schedule split_backwards(Schedule schedule);
/// Each I with its W right behind it as B.
Schedule merge_backwards(Schedule schedule);
/// Each W takes, of its stage's microbatches on that rank that could have theirs then, the oldest.
/// Gradients are added in the order of microbatches: those of a newer one would be set aside.
Schedule oldest_weight_gradients_first(Schedule schedule);
/// A Recompute right before each backward of the given stages (every stage when empty) that has
/// none, whose forwards then keep their input alone. A backward that is the second of a fused pair
/// comes off it.
Schedule with_recompute(Schedule schedule, const std::vector<int>& stages = {});

}  // namespace pipewright::plan
