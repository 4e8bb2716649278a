#pragma once

// Megatron's arguments that change what a model computes: norms, activation, rotary embeddings,
// windows and routers. The facts are those of Megatron-LM 0.20 (d98e8a64): arguments.py,
// TransformerConfig, rotary_pos_embedding.py, multi_latent_attention.py and moe_utils.py.

#include "pipewright/plan/model/transformer_config.hpp"
#include "trainers/megatron_fields.hpp"

namespace pipewright::models {

/// Reads the variants of a config whose sizes are already known.
void read_variants(MegatronFields& fields, plan::TransformerConfig& config);

}  // namespace pipewright::models
