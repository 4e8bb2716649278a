#pragma once

// A decoder as LibTorch computes it: of Llama's family, with mixtures of experts, and of GPT-2's.

#include <vector>

#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"

namespace pipewright::engine {

/// The layers that `plan::layers_of` counts, as the fields of their config say: pre-norm, or with
/// norms on both sides; positions learned, or queries and keys turned by them; attention of heads
/// or latent (its own norms with ε = 10⁻⁶). A router drops no token of those that it sends. Tables
/// begin with a standard deviation of 0.02, all else as LibTorch begins it. Input: int64 tokens
/// [batch, sequence]; output: logits [batch, sequence, vocabulary]. `tokens`: what a shard has of
/// them between products. Throws InputError for what `plan::only_predicted` names.
std::vector<exec::LayerSpec> transformer_layers(const plan::TransformerShape& shape,
                                                exec::Tokens tokens = exec::Tokens::Whole);

}  // namespace pipewright::engine
