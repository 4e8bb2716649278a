#pragma once

// A decoder as LibTorch computes it: of Llama's family, with mixtures of experts, and of GPT-2's.

#include <vector>

#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"

namespace pipewright::exec {

/// The layers that `plan::layers_of` counts: pre-norm, each norm with ε = 10⁻⁵. Positions are
/// learned, or else queries and keys are turned by them, with a base of 10,000 and the halves of a
/// head as pairs. A gated feed-forward is SwiGLU, one that is not has a GELU. A router sends a
/// token to the experts with its largest logits, whose softmax weighs them, and drops none. Tables
/// begin with a standard deviation of 0.02, all else as LibTorch begins it. Input: int64 tokens
/// [batch, sequence]; output: logits [batch, sequence, vocabulary]. `tokens`: what a shard has of
/// them between products. Throws InputError for what `plan::only_predicted` names.
std::vector<LayerSpec> transformer_layers(const plan::TransformerShape& shape,
                                          Tokens tokens = Tokens::Whole);

}  // namespace pipewright::exec
