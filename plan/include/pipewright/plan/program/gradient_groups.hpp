#pragma once

// Gradient-accumulation groups. Gradients are first summed within groups of microbatches, in an
// order that does not depend on the parallelism, so that plans that own whole groups give identical
// bits.
//
// If the gradients of each microbatch are reduced separately over copies (ZeRO stages 2 and 3), no
// rank has the sum of a pipeline's microbatches. A group is then a round: microbatch m of every
// pipeline, summed in the order of pipelines.

#include <vector>

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// Returns the group of each microbatch of the batch, over all replicas. A `groups` of 0 means one
/// group per pipeline and direction or, if microbatches are reduced separately, one per microbatch
/// of a pipeline.
std::vector<int> gradient_groups(const Program& program, int replicas, int groups);

/// Throws InputError if the groups do not divide the batch, or if a pipeline or one of its
/// directions would own part of a group. If microbatches are reduced separately, there must be as
/// many groups as pipelines.
void require_whole_groups(const Program& program, int replicas, int groups);

}  // namespace pipewright::plan
