#pragma once

// Matrix products over a partitioned width, in autograd: a value enters the products of all groups,
// and the results are summed (f and g of Megatron-LM, arXiv 1909.08053, section 3). The summation
// order depends only on the number of groups: it is a binary tree that halves the groups. Each
// tensor-parallel rank sums the subtrees that it owns and sends those; if the sizes are powers of
// two, that is one tensor. Two ranks send each other all of it. With more, each sums one piece and
// then all gather the sums, so that each sends 2(n - 1)/n of the tensor.

#include "pipewright/exec/tensors.hpp"
#include "pipewright/exec/training/shard_group.hpp"

namespace pipewright::exec {

/// The tokens of a value [batch, tokens, …] that a rank has between such products. Whole: all. Cut:
/// its own, equally many for each group (sequence parallelism: Korthikanti et al., arXiv
/// 2205.05198). With Cut, tokens are all-gathered before products and reduce-scattered in sums, so
/// that a rank sends as much as without it.
enum class Tokens { Whole, Cut };

/// Returns the value with all tokens, once for each group of this rank. Its gradient is the sum
/// over all groups.
Tensors for_own_groups(const at::Tensor& value, const TensorParallelPlace& place,
                       Tokens tokens = Tokens::Whole);

/// Returns the sum over the groups of all ranks; `own`: those of this rank. The gradient of each is
/// the sum's gradient. Throws InputError if the tokens cannot be divided equally.
at::Tensor sum_over_groups(const Tensors& own, const TensorParallelPlace& place,
                           Tokens tokens = Tokens::Whole);

/// Returns the same sum, outside autograd.
at::Tensor added_up(const Tensors& own, const TensorParallelPlace& place);

/// Returns the tensors of all tensor-parallel ranks, in order.
Tensors from_all(const at::Tensor& own, const TensorParallelPlace& place);

}  // namespace pipewright::exec
