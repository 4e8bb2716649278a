#pragma once

// Where the tokens of a mixture go: each to its experts, and none is dropped. Tokens are put in the
// order of experts and back by a permutation, and what an expert's choices give a token is added up
// in their order: no sum depends on which of them is ready first.

#include <cstdint>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::engine {

/// Of rows for each expert.
using Counts = std::vector<std::int64_t>;

/// A row is a token at one of its experts: so many choices of the first token, of the next, …
struct Routing {
  Counts counts;             // rows of each expert
  std::int64_t choices = 1;  // experts of a token
  at::Tensor order;          // the rows in the order of experts; of one expert in that of tokens
  at::Tensor places;         // where each row is in that order
};

/// `chosen`: int64 [tokens, choices], from 0 to `experts`.
Routing routing_of(const at::Tensor& chosen, int experts);

/// [tokens, width] to [rows, width], in the order of experts.
at::Tensor in_order_of_experts(const at::Tensor& tokens, const Routing& routing);

/// [rows, width] in the order of experts, to [tokens, choices, width].
at::Tensor in_order_of_tokens(const at::Tensor& rows, const Routing& routing);

/// [tokens, choices, width] to [tokens, width]: the first choice, plus the second, and so on.
at::Tensor sum_of_choices(const at::Tensor& rows);

}  // namespace pipewright::engine
