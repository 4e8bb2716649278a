#pragma once

// A width that shards share out, in autograd: a value goes into the products of all groups, and
// what they give is added up (f and g of Megatron-LM, arXiv 1909.08053, section 3). A sum has an
// order that belongs to the number of groups alone: halves are added up, each of them in the same
// way. A shard adds up what of this tree is its own and sends that: where sizes are powers of two,
// one tensor. Two shards send each other all of it; more add up a piece each and gather the sums,
// so that each sends 2(n - 1)/n of it.

#include "pipewright/exec/tensors.hpp"
#include "pipewright/exec/training/shard_group.hpp"

namespace pipewright::exec {

/// What a shard has of a value between such products, [batch, tokens, …]: all of it, or the tokens
/// that are its own, an equal number for each group (sequence parallelism: Korthikanti et al.,
/// arXiv 2205.05198). Then tokens are gathered where they go into products and shared out where
/// these are added up, so that a shard sends as much as without.
enum class Tokens { Whole, Cut };

/// The value once for each group of this shard, with all tokens. Its gradient is the sum over the
/// groups of all.
Tensors for_own_groups(const at::Tensor& value, const ShardPlace& place,
                       Tokens tokens = Tokens::Whole);

/// The sum over the groups of all shards, of which this one has these. Each has the sum's gradient.
/// Throws InputError when tokens cannot be shared out equally.
at::Tensor sum_over_groups(const Tensors& own, const ShardPlace& place,
                           Tokens tokens = Tokens::Whole);

/// The same where nothing has a gradient.
at::Tensor added_up(const Tensors& own, const ShardPlace& place);

/// What each shard hands in, in their order.
Tensors from_all(const at::Tensor& own, const ShardPlace& place);

}  // namespace pipewright::exec
