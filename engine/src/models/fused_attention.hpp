#pragma once

// Attention with fused kernels that do not materialize the scores (FlashAttention, arXiv
// 2205.14135).

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::engine {

/// Repeats keys and values for each head of queries that shares them.
exec::Tensors for_each_query(const exec::Tensors& qkv);

/// Returns the attention mask, true where a token is visible, as LibTorch's attention expects it,
/// on the device of `like`. Empty: the mask is causal.
using SeenMask = std::function<std::optional<at::Tensor>(const at::Tensor& like)>;

/// Computes attention of queries, keys and values [batch, heads, tokens, channels], of which keys
/// and values may have fewer heads, and values another width. Returns [batch, heads, tokens,
/// channels of values]. Without `scale`: 1 / sqrt(channels). On a CPU, keys and values are saved
/// without repetition and the mask is recomputed in the backward. On other devices, LibTorch's
/// kernels decide what is saved.
at::Tensor fused_attention(const exec::Tensors& qkv, const SeenMask& mask,
                           std::optional<double> scale);

}  // namespace pipewright::engine
