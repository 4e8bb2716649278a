#pragma once

// Sampling of the next token from its logits.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace pipewright::engine {

struct TokenChoice {
  double temperature = 0;  // divides the logits; 0: always the most likely token (greedy)
  int top_k = 0;           // sample only from the k most likely tokens; 0: from all
  std::int64_t seed = 0;
};

/// Throws InputError if a value is out of range.
void check(const TokenChoice& how);

/// Samples the token at `position` of sequence `sequence`. The result depends only on these two,
/// the seed and the logits; of equal logits, the lower token is preferred. `logits`: one number per
/// token of the vocabulary, in any precision, on the CPU. Throws InputError if one is not finite.
std::int64_t choose_token(const at::Tensor& logits, const TokenChoice& how, std::int64_t sequence,
                          std::int64_t position);

}  // namespace pipewright::engine
