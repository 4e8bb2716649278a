#pragma once

// Decoder-only transformers built from LibTorch operators: Llama's family, mixtures of experts, and
// GPT-2's.

#include <vector>

#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"

namespace pipewright::engine {

/// Returns the layers that `plan::layers_of` counts, as set by the config: pre-norm, or norms on
/// both sides; learned positions or rotary embeddings (RoPE); multi-head or latent attention (whose
/// own norms use ε = 10⁻⁶). Routers drop no tokens. Embedding tables are initialized with a
/// standard deviation of 0.02, everything else as in LibTorch. Input: int64 tokens [batch,
/// sequence]; output: logits [batch, sequence, vocabulary]. `tokens`: the tokens that a
/// tensor-parallel rank holds between products. Throws InputError for fields that
/// `plan::only_predicted` names.
std::vector<exec::LayerSpec> transformer_layers(const plan::TransformerShape& shape,
                                                exec::Tokens tokens = exec::Tokens::Whole);

}  // namespace pipewright::engine
