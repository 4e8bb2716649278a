#pragma once

// Routing of a mixture's tokens to their experts, without dropping any. Tokens are permuted into
// the order of experts and back. The outputs of a token's experts are summed in the order of its
// choices, so that no sum depends on which expert finishes first.

#include <cstdint>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::engine {

/// Number of rows per expert.
using Counts = std::vector<std::int64_t>;

/// The permutation of rows. A row is a token at one of its experts: all choices of the first token,
/// then of the next, and so on.
struct Routing {
  Counts counts;             // rows per expert
  std::int64_t choices = 1;  // experts per token
  at::Tensor order;          // rows sorted by expert; within an expert, by token
  at::Tensor places;         // the position of each row in that order
};

/// `chosen`: int64 [tokens, choices], values in [0, experts).
Routing routing_of(const at::Tensor& chosen, int experts);

/// Gathers [tokens, width] into [rows, width], sorted by expert.
at::Tensor in_order_of_experts(const at::Tensor& tokens, const Routing& routing);

/// Restores [rows, width], sorted by expert, to [tokens, choices, width].
at::Tensor in_order_of_tokens(const at::Tensor& rows, const Routing& routing);

/// Sums [tokens, choices, width] to [tokens, width], in the order of choices.
at::Tensor sum_of_choices(const at::Tensor& rows);

}  // namespace pipewright::engine
