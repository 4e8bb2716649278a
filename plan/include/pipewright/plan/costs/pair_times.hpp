#pragma once

// Time of a fused pair: the communication among tensor- or expert-parallel ranks in one action can
// overlap with the compute of the other.

#include "pipewright/plan/costs/stage_costs.hpp"

namespace pipewright::plan {

/// Returns the part of an action's time that is communication among the ranks that share its stage.
Seconds shards_of(Work work, const StageCost& cost);

/// Returns how much of that communication overlaps with the compute of the other action of the
/// pair, and so adds nothing to the pair's time. With an `overlap` of 0 it is nothing, as if both
/// ran one after the other; with 1 it is up to the other action's whole compute time. A pair of F
/// and B takes F + B less the hidden part of each: with an overlap of 1, the longer of F's
/// communication and B's compute, plus the longer of B's communication and F's compute.
Seconds overlapped_communication(Work work, const StageCost& cost, Work other_work,
                                 const StageCost& other_cost, double overlap);

}  // namespace pipewright::plan
