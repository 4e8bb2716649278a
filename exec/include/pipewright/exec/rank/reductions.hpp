#pragma once

// Sums of gradients over ranks, in an order that does not depend on who asks.

#include <vector>

#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/exec/transport/rank_group.hpp"

namespace pipewright::exec {

using Members = RankGroup;

inline CopySeat seat_in(const Members& members) { return {members.index(), members.size()}; }

/// Where the layers lie that share a weight: all on one stage, or on several.
enum class TiesOf { OneStage, SeveralStages };

/// Sums the gradients of each weight that is tied so over its layers, in the order of layers.
/// `stages`: of this rank. `members`: the ranks that hold the others.
void reduce_tied(const std::vector<Stage*>& stages, TiesOf of, const TrainingSetup& setup,
                 const Members& members);

/// Whether a member needs its own shard of a sum alone, or all of it.
enum class SumOf { Shard, Whole };

/// Sums the gradients of all copies of a stage, in the order of gradient groups: each member gets
/// its shard of all gradients and adds it up, and then, where the whole is wanted, the shards of
/// all. Of n members each sends (n - 1)/n of the gradients once or twice.
void reduce_copies(Stage& stage, const Members& members, SumOf wanted,
                   CopiesOf of = CopiesOf::Rest);

/// The same of one microbatch, where gradients are sharded: in the order of copies, each of which
/// has another microbatch in its place. `of_experts`: of the members those with the same experts.
/// `gradients`: as ScatteredGradients has them; all members let go of theirs together.
void scatter_copies(Stage& stage, const Members& members, const Members& of_experts, int microbatch,
                    Tensors gradients);

/// After an update by shards, or before a use where parameters are sharded and have room: every
/// copy gets the parameters of all.
void gather_shards(Stage& stage, const Members& members, CopiesOf of = CopiesOf::Rest);

}  // namespace pipewright::exec
