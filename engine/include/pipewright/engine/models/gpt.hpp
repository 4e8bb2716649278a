#pragma once

// The GPT of scenarios as LibTorch computes it.

#include <vector>

#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/model/gpt_model.hpp"

namespace pipewright::engine {

/// The layers that `plan::gpt_model` describes. Input: int64 tokens [batch, sequence]; output:
/// logits [batch, sequence, vocabulary]. `tokens`: what a shard has of them between products.
std::vector<exec::LayerSpec> gpt_layers(const plan::GptShape& shape,
                                        exec::Tokens tokens = exec::Tokens::Whole);

}  // namespace pipewright::engine
