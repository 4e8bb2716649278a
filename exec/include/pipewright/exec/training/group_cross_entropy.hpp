#pragma once

// Vocabulary-parallel cross entropy. Tensor-parallel ranks exchange the largest logit and the sum
// of exponentials of each token instead of the logits. Sums go over tensor groups, as in
// group_sums.hpp. The backward needs no communication.

#include <cstdint>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/exec/training/shard_group.hpp"

namespace pipewright::exec {

/// Returns the mean over all tokens whose target is not `ignored_target`. `logits`: for each tensor
/// group of this rank, [batch, …, words of the group], float32. `targets`: int64 [batch, …], words
/// of the whole vocabulary, which has `vocabulary` words. Throws InputError if a target is not in
/// the vocabulary.
at::Tensor cross_entropy_over_groups(const Tensors& logits, const at::Tensor& targets,
                                     std::int64_t vocabulary, const TensorParallelPlace& place);

}  // namespace pipewright::exec
