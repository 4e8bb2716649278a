#pragma once

// Attention whose kernels write no scores (FlashAttention, arXiv 2205.14135).

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::engine {

/// Keys and values once for each head of queries that shares them.
exec::Tensors for_each_query(const exec::Tensors& qkv);

/// True where a token is seen, as LibTorch's attention takes it, on the device of `like`; nothing:
/// all tokens up to its own.
using SeenMask = std::function<std::optional<at::Tensor>(const at::Tensor& like)>;

/// Queries, keys and values [batch, heads, tokens, channels], of which keys and values may have
/// fewer heads, and values another width: [batch, heads, tokens, channels of values]. No `scale`:
/// 1 / sqrt(channels). On a CPU keys and values are kept once for each of their own heads, and the
/// mask is made anew in the backward; on other devices LibTorch's kernels decide what is kept.
at::Tensor fused_attention(const exec::Tensors& qkv, const SeenMask& mask,
                           std::optional<double> scale);

}  // namespace pipewright::engine
