#pragma once

// Parameters and FLOPs of a transformer training, from sizes: means over its layers, for the
// analytic times and memory.

#include "pipewright/plan/model/transformer_training.hpp"

namespace pipewright::models {

/// Returns the fraction of layers without experts, 0 to 1.
double dense_share(const plan::TransformerConfig& model);
/// Returns the parameters of a layer's routed experts, on average for this fraction of dense
/// layers.
double expert_parameters(const plan::TransformerConfig& model, double dense_share);
/// Returns all parameters of a layer, on average for this fraction of dense layers.
double layer_parameters(const plan::TransformerConfig& model, double dense_share);
/// Return the means for the model's own fraction of dense layers.
double expert_parameters(const plan::TransformerConfig& model);
double layer_parameters(const plan::TransformerConfig& model);
/// Returns the parameters of the token embedding, and of positions if they are learned.
double embedding_parameters(const plan::TransformerTraining& training);
double head_parameters(const plan::TransformerConfig& model);

/// Returns the FLOPs of an iteration, forward and backward, without recomputation: 6 per parameter
/// that a token uses, and 12 · layers · heads · channels · sequence for attention scores, both
/// times the tokens (Narayanan et al., arXiv 2104.04473, appendix; without its recomputation).
double training_flops(const plan::TransformerTraining& training);

}  // namespace pipewright::models
