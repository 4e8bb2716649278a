#pragma once

// Attention of a decoder: tokens look at those before them. On a CPU it keeps queries, keys, values
// and what it gives for its backward, and a number for each query; scores only where they are bent.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "pipewright/engine/models/generating_layer.hpp"
#include "pipewright/exec/tensors.hpp"

namespace pipewright::engine {

/// How tokens look at those before them.
struct Attending {
  std::int64_t width = 0;   // of a head of keys
  std::int64_t window = 0;  // tokens that one sees, itself included; 0: all before it
  double scale = 0;         // times queries with keys; 0: 1 / sqrt(width)
  double cap = 0;           // what scores approach as they grow; 0: none
  /// int64 [batch, sequence], of which document each token is: it sees no other's. Undefined: one.
  at::Tensor documents{};
};

/// The position of each token in its document, whose tokens lie one behind the other; the same
/// shape.
at::Tensor places_in_documents(const at::Tensor& documents);

/// Of heads side by side, each for itself: no token sees a later one. `queries` [batch, sequence,
/// heads · width], `keys` the same, or with fewer heads, each of which is that of equally many of
/// queries in a row; `values` have as many heads as keys, of any width. `core_again`: the backward
/// computes scores anew.
at::Tensor causal_attention(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const Attending& how, bool core_again);

/// The same of the tokens of a sequence that come next, which see all before them as well: all of
/// one that begins, or one more. `group`: of the heads that the layer has.
at::Tensor next_attention(const at::Tensor& queries, const at::Tensor& keys,
                          const at::Tensor& values, const Attending& how, SequenceMemory& memory,
                          std::size_t group);

}  // namespace pipewright::engine
