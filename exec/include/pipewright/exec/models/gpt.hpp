#pragma once

// The GPT of scenarios as LibTorch computes it.

#include <vector>

#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/model/gpt_model.hpp"

namespace pipewright::exec {

/// The layers that `plan::gpt_model` describes. Input: int64 tokens [batch, sequence]; output:
/// logits [batch, sequence, vocabulary].
std::vector<LayerSpec> gpt_layers(const plan::GptShape& shape);

}  // namespace pipewright::exec
