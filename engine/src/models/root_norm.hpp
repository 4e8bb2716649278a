#pragma once

// Root-mean-square normalization (RMSNorm, arXiv 1910.07467).

#include <ATen/core/Tensor.h>

namespace pipewright::engine {

/// Divides `input` [..., channels] by the root of its channels' mean square and multiplies it by
/// `weight` [channels], or by 1 + weight with `plus_one`. On a CPU, only the input is saved for the
/// backward: LibTorch would also save single-precision tensors of up to three times its size.
at::Tensor root_norm(const at::Tensor& input, const at::Tensor& weight, double epsilon,
                     bool plus_one);

}  // namespace pipewright::engine
