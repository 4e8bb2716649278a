#pragma once

// Sums of gradients over ranks, in an order that is the same on every rank.

#include <vector>

#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/exec/transport/rank_group.hpp"

namespace pipewright::exec {

using Members = RankGroup;

inline ReplicaIndex seat_in(const Members& members) { return {members.index(), members.size()}; }

/// The location of the layers that share a weight: all on one stage, or on several.
enum class TiesOf { OneStage, SeveralStages };

/// Sums the gradients of tied weights over their layers, in the order of layers, for the weights
/// whose ties are as `of` says. `stages`: those of this rank. `members`: the ranks that hold the
/// other layers.
void reduce_tied(const std::vector<Stage*>& stages, TiesOf of, const TrainingSetup& setup,
                 const Members& members);

/// The part of a sum that each rank of the group needs: its own shard, or all of it.
enum class SumOf { Shard, Whole };

/// Sums the gradients of a stage over its replicas, in the order of gradient groups. A
/// reduce-scatter gives each rank the sum of its shard; if the whole sum is wanted, an all-gather
/// follows. Each of n ranks sends (n - 1)/n of the gradients once or twice.
void reduce_copies(Stage& stage, const Members& members, SumOf wanted,
                   CopiesOf of = CopiesOf::Rest);

/// Reduce-scatters the gradients of one microbatch, under ZeRO stages 2 and 3, in the order of
/// replicas; each replica has another microbatch in this position. `of_experts`: the ranks of
/// `members` with the same experts. `gradients`: in the order of ScatteredGradients. All ranks
/// release their gradients together.
void scatter_copies(Stage& stage, const Members& members, const Members& of_experts, int microbatch,
                    Tensors gradients);

/// All-gathers the parameters of a stage, so that every replica has all of them: after a sharded
/// update, or before a use under ZeRO stage 3, when their memory has been allocated.
void gather_shards(Stage& stage, const Members& members, CopiesOf of = CopiesOf::Rest);

}  // namespace pipewright::exec
