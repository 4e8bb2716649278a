#pragma once

// The norm over the root of the mean square (arXiv 1910.07467).

#include <ATen/core/Tensor.h>

namespace pipewright::engine {

/// `input` [..., channels] over the root of its channels' mean square, times `weight` [channels],
/// or with `plus_one` times 1 and the weight. On a CPU, the backward keeps the input alone: what
/// LibTorch keeps there beside it, in single precision, is up to three times as much.
at::Tensor root_norm(const at::Tensor& input, const at::Tensor& weight, double epsilon,
                     bool plus_one);

}  // namespace pipewright::engine
