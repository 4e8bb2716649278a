#pragma once

// Gradients are added up in groups of microbatches first, in an order that does not depend on how
// the training is cut: so plans that own whole groups give the same bits.
//
// Where the gradients of each microbatch are summed over copies by themselves (ZeRO stages 2 and
// 3), nobody holds the sum of a pipeline's microbatches. There a group is a round: microbatch m of
// every pipeline, added up in the order of pipelines.

#include <vector>

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// The group of each microbatch of the batch, over all replicas; `groups` of 0: one for each
/// pipeline and each direction of one; where microbatches are summed by themselves, one for each
/// microbatch of a pipeline.
std::vector<int> gradient_groups(const Program& program, int replicas, int groups);

/// Throws InputError when the groups do not divide the batch, or a pipeline or one of its
/// directions would own part of one; where microbatches are summed by themselves, when there are
/// not as many groups as pipelines.
void require_whole_groups(const Program& program, int replicas, int groups);

}  // namespace pipewright::plan
