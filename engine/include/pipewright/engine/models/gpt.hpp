#pragma once

// The GPT model of scenarios, built from LibTorch operators.

#include <vector>

#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/model/gpt_model.hpp"

namespace pipewright::engine {

/// Returns the layers that `plan::gpt_model` describes. Input: int64 tokens [batch, sequence];
/// output: logits [batch, sequence, vocabulary]. `tokens`: the tokens that a tensor-parallel rank
/// holds between products (sequence parallelism).
std::vector<exec::LayerSpec> gpt_layers(const plan::GptShape& shape,
                                        exec::Tokens tokens = exec::Tokens::Whole);

}  // namespace pipewright::engine
