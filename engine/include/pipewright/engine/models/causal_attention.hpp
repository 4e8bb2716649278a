#pragma once

// Causal attention of a decoder. On a CPU it saves queries, keys, values, its output and one number
// per query for the backward. It saves attention scores only where they are capped.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "pipewright/engine/models/generating_layer.hpp"
#include "pipewright/exec/tensors.hpp"

namespace pipewright::engine {

/// Options of causal attention.
struct AttentionOptions {
  std::int64_t width = 0;   // channels per key head
  std::int64_t window = 0;  // tokens visible to a token, itself included; 0: all before it
  double scale = 0;         // factor for query-key products; 0: 1 / sqrt(width)
  double cap = 0;           // tanh cap of the scores, which they approach as they grow; 0: none
  /// int64 [batch, sequence]: each token's document in a packed sequence. A token sees only its own
  /// document. Undefined: one document.
  at::Tensor documents{};
};

/// Returns the position of each token within its document, in the same shape. A document's tokens
/// must be contiguous.
at::Tensor places_in_documents(const at::Tensor& documents);

/// Computes multi-head causal attention. `queries` is [batch, sequence, heads · width]. `keys` is
/// the same, or has fewer heads, each shared by the same number of consecutive query heads
/// (grouped-query attention). `values` have as many heads as keys, of any width. `core_again`:
/// recompute the scores in the backward.
at::Tensor causal_attention(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const AttentionOptions& how, bool core_again);

/// Computes attention for a sequence's next tokens, which also see all tokens in the KV cache:
/// either the whole prompt, or one more token. `group`: index of the layer's group of heads.
at::Tensor next_attention(const at::Tensor& queries, const at::Tensor& keys,
                          const at::Tensor& values, const AttentionOptions& how, KvCache& memory,
                          std::size_t group);

}  // namespace pipewright::engine
