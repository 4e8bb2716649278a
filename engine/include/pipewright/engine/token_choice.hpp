#pragma once

// Which token comes next, by the logits of all.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace pipewright::engine {

struct TokenChoice {
  double temperature = 0;  // 0: the likeliest token each time; logits are divided by it
  int top_k = 0;           // the draw is among so many of the likeliest; 0: among all
  std::int64_t seed = 0;
};

/// Throws InputError where it says nothing that can be.
void check(const TokenChoice& how);

/// The token at `position` of sequence `sequence`. The draw depends on these two, the seed and the
/// logits alone; of equal logits the lower token is the likelier one. `logits`: of a number for
/// each word, in any precision, on the CPU. Throws InputError where one is not finite.
std::int64_t choose_token(const at::Tensor& logits, const TokenChoice& how, std::int64_t sequence,
                          std::int64_t position);

}  // namespace pipewright::engine
