#pragma once

// What a fused pair takes: while the shards of one action pass on what they have to, the other one
// computes.

#include "pipewright/plan/costs/stage_costs.hpp"

namespace pipewright::plan {

/// The part of an action's time in which the shards of its rank pass on what they have to.
Seconds shards_of(Work work, const StageCost& cost);

/// How much of that goes on beside the compute of the action that it is fused with, and adds
/// nothing to the pair: with an `overlap` of 1 as much as that computes, of 0 nothing, as both run
/// one after the other. A pair of F and B takes F + B less what each of them hides: with an overlap
/// of 1 the longer of F's sums and B's compute, and the longer of B's sums and F's compute.
Seconds hidden_beside(Work work, const StageCost& cost, Work other_work,
                      const StageCost& other_cost, double overlap);

}  // namespace pipewright::plan
