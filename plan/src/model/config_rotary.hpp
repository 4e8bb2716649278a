#pragma once

// Reads the rotary embedding (RoPE) from a config.json: `rope_parameters` in transformers 5;
// `rope_theta`, `rope_scaling` and `partial_rotary_factor` in transformers 4.

#include "config_fields.hpp"
#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::plan {

/// Reads the parameters. `base` is the default base. If the file has parameters by kind of layer,
/// those of full-attention layers are read.
void read_rotary(ConfigFields& fields, TransformerConfig& config, double base = 10'000);

/// Reads the base of sliding-window layers (Gemma 3).
void read_window_rotary(ConfigFields& fields, TransformerConfig& config);

/// Returns the factor of the attention scores in latent attention. YaRN scaling makes it larger
/// than 1 / sqrt(channels); 0 means 1 / sqrt(channels).
double score_scale_of_latent(ConfigFields& fields, const TransformerConfig& config);

}  // namespace pipewright::plan
