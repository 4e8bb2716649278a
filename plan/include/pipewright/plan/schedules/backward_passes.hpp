#pragma once

// Transformations of a schedule's backwards: splitting, merging, reordering, and recomputation.

#include <vector>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// Replaces each B by I directly followed by W. A fused pair that contains a B becomes two separate
/// actions.
Schedule split_backwards(Schedule schedule);
/// Replaces each I that is directly followed by its W by a B.
Schedule merge_backwards(Schedule schedule);
/// Gives each W the oldest microbatch of its stage whose weight gradient is due on that rank.
/// Gradients must be accumulated in the order of microbatches, so those of a newer microbatch would
/// have to be stored.
Schedule oldest_weight_gradients_first(Schedule schedule);
/// Inserts a Recompute directly before each backward of the given stages (all stages if empty) that
/// does not have one. The forwards of these stages then keep only their input. A backward that is
/// the second action of a fused pair is separated from it.
Schedule with_recompute(Schedule schedule, const std::vector<int>& stages = {});

}  // namespace pipewright::plan
