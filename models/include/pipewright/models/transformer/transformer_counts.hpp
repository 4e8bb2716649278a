#pragma once

// Parameters and FLOPs of a transformer's training, from sizes: means over its layers, as the
// analytic times and memory need them.

#include "pipewright/plan/model/transformer_training.hpp"

namespace pipewright::models {

/// How many of the layers have no experts: 0 to 1.
double dense_share(const plan::TransformerConfig& model);
/// The routed experts' parameters of a layer, where so many of the layers are dense.
double expert_parameters(const plan::TransformerConfig& model, double dense_share);
/// All parameters of a layer, likewise.
double layer_parameters(const plan::TransformerConfig& model, double dense_share);
/// The means over the model's own layers.
double expert_parameters(const plan::TransformerConfig& model);
double layer_parameters(const plan::TransformerConfig& model);
/// The token embedding, and positions where they are learned.
double embedding_parameters(const plan::TransformerTraining& training);
double head_parameters(const plan::TransformerConfig& model);

/// FLOPs of an iteration, forward and backward, nothing run again: 6 for each parameter that a
/// token meets and 12 · layers · heads · channels · sequence for attention's scores, each times
/// tokens (Narayanan et al., arXiv 2104.04473, appendix; without its recomputation).
double training_flops(const plan::TransformerTraining& training);

}  // namespace pipewright::models
