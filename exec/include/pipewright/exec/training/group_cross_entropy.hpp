#pragma once

// Cross entropy where shards have shared out the vocabulary: they tell each other the largest logit
// and the sums of exponentials of each token, and not the logits. Sums go over groups as in
// group_sums.hpp. The backward needs no other shard.

#include <cstdint>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/exec/training/shard_group.hpp"

namespace pipewright::exec {

/// The mean over all tokens whose target is not `ignored_target`. `logits`: of each group of this
/// shard [batch, …, its words], in float32; `targets`: int64 [batch, …], each in the vocabulary of
/// so many words. Throws InputError where one is not.
at::Tensor cross_entropy_over_groups(const Tensors& logits, const at::Tensor& targets,
                                     std::int64_t vocabulary, const ShardPlace& place);

}  // namespace pipewright::exec
