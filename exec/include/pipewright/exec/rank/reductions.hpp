#pragma once

// Sums of gradients over ranks, and the all-gather of sharded parameters. All ranks add in the same
// order, so they get the same bits.

#include <vector>

#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/exec/transport/rank_group.hpp"

namespace pipewright::exec {

using Members = RankGroup;

inline ReplicaIndex seat_in(const Members& members) { return {members.index(), members.size()}; }

/// Selects tied weights by where the layers that share them are: all on one stage, or on several.
enum class TiesOf { OneStage, SeveralStages };

/// Sums the gradients of each tied weight over the layers that share it, in the order of layers.
/// Only weights that `of` selects are summed. `stages`: this rank's stages. `members`: the ranks
/// that have layers with such weights, including this one.
void reduce_tied(const std::vector<Stage*>& stages, TiesOf of, const TrainingSetup& setup,
                 const Members& members);

/// The part of a sum that each rank of the group needs: its own shard, or all of it.
enum class SumOf { Shard, Whole };

/// Sums the gradients of a stage over its data-parallel replicas (`members`), in the order of
/// gradient groups. A reduce-scatter gives each rank the sum of its shard. If the whole sum is
/// wanted, an all-gather follows. Each of n ranks sends (n - 1)/n of the gradients of each group
/// that it computed, and with the all-gather (n - 1)/n of the gradients once more.
void reduce_copies(Stage& stage, const Members& members, SumOf wanted,
                   CopiesOf of = CopiesOf::Rest);

/// Reduce-scatters the gradients of one microbatch, under ZeRO stages 2 and 3. Each replica
/// contributes its own microbatch with the index `microbatch`, and they are added in the order of
/// replicas. `of_experts`: the ranks of `members` with the same experts. `gradients`: in the order
/// of ScatteredGradients. Returns when all ranks have read the gradients, which are then released.
void scatter_copies(Stage& stage, const Members& members, const Members& of_experts, int microbatch,
                    Tensors gradients);

/// All-gathers the parameters of a stage from the shards of its replicas: after each replica has
/// updated its shard (ZeRO stages 1 and 2), or before the stage computes under ZeRO stage 3. The
/// parameters' memory must be allocated.
void gather_shards(Stage& stage, const Members& members, CopiesOf of = CopiesOf::Rest);

}  // namespace pipewright::exec
