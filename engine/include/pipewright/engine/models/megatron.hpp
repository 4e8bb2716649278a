#pragma once

// Weights of Megatron-LM (its core's GPTModel in the torch_dist format) for a transformer's layers.

#include "pipewright/exec/checkpoint/distributed_checkpoint.hpp"
#include "pipewright/exec/checkpoint/named_weights.hpp"
#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::engine {

/// As weights of `transformer_layers`, under their names. All layers lie in one tensor, such as
/// `decoder.layers.self_attention.linear_qkv.weight` [layers, rows, hidden], or each in its own,
/// `decoder.layers.3.…`; queries, keys and values stand group by group of heads that share a key;
/// of a gated feed-forward the gate before the up projection; norms by themselves, or with the
/// product behind them. Of a tensor of all layers only the layer that is asked for is read; of a
/// padded vocabulary the rows that are words. Throws InputError for mixtures and latent attention,
/// and with the names of tensors that are missing or of another shape.
exec::NamedWeights megatron_weights(const exec::DistributedCheckpoint& checkpoint,
                                    const plan::TransformerConfig& config);

}  // namespace pipewright::engine
