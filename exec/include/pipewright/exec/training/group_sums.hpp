#pragma once

// The communication around tensor-parallel matrix products, in autograd (f and g of Megatron-LM,
// arXiv 1909.08053, section 3). A width is partitioned into groups
// (`TensorParallelPlace::groups`). A value enters the product of each group, and the results of all
// groups are summed. The summation order depends only on the number of groups, not on the number of
// ranks: it is a binary tree that halves the groups. Each tensor-parallel rank sums the largest
// subtrees that consist of its own groups, and sends these sums: one tensor if the numbers of
// groups and ranks are powers of two. Two ranks send each other the whole tensor. With more ranks,
// each rank sums one piece of the tensor for all, and an all-gather of the pieces follows, so that
// each of n ranks sends 2(n - 1)/n of the tensor.

#include "pipewright/exec/tensors.hpp"
#include "pipewright/exec/training/shard_group.hpp"

namespace pipewright::exec {

/// The tokens of a value [batch, tokens, …] that a tensor-parallel rank has outside of such
/// products. Whole: all tokens. Cut: only its own (sequence parallelism: Korthikanti et al., arXiv
/// 2205.05198), which are as many as its share of the groups. With Cut, tokens are all-gathered
/// before products and sums are reduce-scattered, so that a rank sends as much as with Whole.
enum class Tokens { Whole, Cut };

/// Returns the value with all tokens, once for each group of this rank: the inputs of their
/// products. The gradient of `value` is the sum over the groups of all ranks.
Tensors for_own_groups(const at::Tensor& value, const TensorParallelPlace& place,
                       Tokens tokens = Tokens::Whole);

/// Returns the sum over the groups of all ranks. `own`: the results of this rank's groups, each of
/// which gets the sum's gradient. Throws InputError if Cut cannot divide the tokens equally among
/// the groups.
at::Tensor sum_over_groups(const Tensors& own, const TensorParallelPlace& place,
                           Tokens tokens = Tokens::Whole);

/// Returns the same sum with all tokens, without recording it in autograd.
at::Tensor added_up(const Tensors& own, const TensorParallelPlace& place);

/// Returns the tensors of all tensor-parallel ranks, in the order of ranks.
Tensors from_all(const at::Tensor& own, const TensorParallelPlace& place);

}  // namespace pipewright::exec
