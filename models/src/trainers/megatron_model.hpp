#pragma once

// A transformer as Megatron-LM's arguments. Facts from Megatron-LM 0.20 (d98e8a64): arguments.py,
// TransformerConfig, rotary_pos_embedding.py, multi_latent_attention.py and moe_utils.py.

#include "pipewright/plan/model/transformer_shape.hpp"
#include "trainers/megatron_text.hpp"

namespace pipewright::models {

/// Adds the arguments for the model and its sequence. A field that Megatron lacks is left out, so
/// the arguments are then read as another model.
void add_model(MegatronText& arguments, const plan::TransformerShape& shape);

}  // namespace pipewright::models
