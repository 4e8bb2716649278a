#pragma once

// Weights of a Megatron-LM checkpoint (Megatron Core's GPTModel in torch_dist format) for a
// transformer's layers.

#include "pipewright/exec/checkpoint/distributed_checkpoint.hpp"
#include "pipewright/exec/checkpoint/named_weights.hpp"
#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::engine {

/// Returns the checkpoint's weights under the names of `transformer_layers`. The checkpoint may
/// stack all layers in one tensor, such as `decoder.layers.self_attention.linear_qkv.weight`
/// [layers, rows, hidden], or store each in its own, `decoder.layers.3.…`. Queries, keys and values
/// are interleaved by group of heads that share a key. In a gated feed-forward the gate precedes
/// the up projection. Norms may be stored separately or fused with the following product. From a
/// stacked tensor only the requested layer is read; from a padded vocabulary only the rows of
/// actual tokens. Throws InputError for mixtures of experts and latent attention, and lists tensors
/// that are missing or have another shape.
exec::NamedWeights megatron_weights(const exec::DistributedCheckpoint& checkpoint,
                                    const plan::TransformerConfig& config);

}  // namespace pipewright::engine
