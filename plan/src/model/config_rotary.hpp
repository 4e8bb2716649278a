#pragma once

// What a config.json says of rotary positions: `rope_parameters` in transformers 5; `rope_theta`,
// `rope_scaling` and `partial_rotary_factor` in transformers 4.

#include "config_fields.hpp"
#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::plan {

/// `base`: where the file says none. Of parameters by kind of layer, those of layers that see all.
void read_rotary(ConfigFields& fields, TransformerConfig& config, double base = 10'000);

/// The base of layers with a window (Gemma 3).
void read_window_rotary(ConfigFields& fields, TransformerConfig& config);

/// What scores of latent attention are multiplied by: where positions are scaled by YaRN, more than
/// 1 / sqrt(channels); 0: that.
double score_scale_of_latent(ConfigFields& fields, const TransformerConfig& config);

}  // namespace pipewright::plan
