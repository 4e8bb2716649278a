#pragma once

// Attention blocks of a decoder layer, partitioned by heads among tensor-parallel ranks.

#include <torch/nn/module.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/engine/models/causal_attention.hpp"
#include "pipewright/engine/models/group_layers.hpp"
#include "rotary_embedding.hpp"

namespace pipewright::engine {

/// Computes a group's attention from the queries, keys and values of its heads.
using MixHeads = std::function<at::Tensor(std::size_t group, const at::Tensor& queries,
                                          const at::Tensor& keys, const at::Tensor& values)>;

/// The positions of a part of a sequence. Empty: the whole sequence.
using PartOfSequence = std::optional<RotaryEmbedding::Part>;

/// Multi-head attention, or grouped-query attention if the model has fewer heads of keys and values
/// than of queries.
class AttentionImpl final : public torch::nn::Module {
 public:
  AttentionImpl(const plan::TransformerConfig& config, int layer,
                const exec::TensorParallelPlace& place, exec::Tokens tokens);

  /// Takes and returns [batch, tokens, hidden] of this rank's tokens. `documents`: as in Attending;
  /// `core_again`: as in causal_attention.
  at::Tensor forward(const at::Tensor& input, const at::Tensor& documents, bool core_again);
  /// Computes attention for a sequence's next tokens, with the KV cache `memory`.
  at::Tensor decode_step(const at::Tensor& input, KvCache& memory);
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;

 private:
  at::Tensor mixed(const at::Tensor& input, const PartOfSequence& part, const MixHeads& mix);
  exec::Tensors placed(exec::Tensors groups, const GroupNorm& norm, const PartOfSequence& part);

  exec::TensorParallelPlace place_;
  exec::Tokens tokens_;
  AttentionOptions how_;
  bool turns_;
  RotaryEmbedding rotation_;
  ColumnLinear query_, key_, value_;
  RowLinear project_;
  GroupNorm query_norm_{nullptr}, key_norm_{nullptr};
};
TORCH_MODULE(Attention);

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): keys and values of all heads are
/// computed from a low-rank latent, and optionally queries as well. A further part of the keys,
/// shared by all heads, has rotary embeddings.
class LatentAttentionImpl final : public torch::nn::Module {
 public:
  LatentAttentionImpl(const plan::TransformerConfig& config, int layer,
                      const exec::TensorParallelPlace& place, exec::Tokens tokens);

  at::Tensor forward(const at::Tensor& input, const at::Tensor& documents, bool core_again);
  at::Tensor decode_step(const at::Tensor& input, KvCache& memory);
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;

 private:
  /// The heads of one group.
  struct Heads {
    at::Tensor queries, keys, values;
  };
  at::Tensor mixed(const at::Tensor& input, const PartOfSequence& part, const MixHeads& mix);
  Heads heads_of(const at::Tensor& queries, const at::Tensor& keys_and_values,
                 const at::Tensor& shared_key, const PartOfSequence& part);

  exec::TensorParallelPlace place_;
  exec::Tokens tokens_;
  AttentionOptions how_;
  std::int64_t rank_, channels_, turning_, values_;  // latent rank; per head: key, RoPE and value
                                                     // channels
  RotaryEmbedding rotation_;
  GroupLinear query_down_{nullptr}, latent_down_;
  GroupNorm query_norm_{nullptr}, latent_norm_{nullptr};
  ColumnLinear query_, latent_up_;
  RowLinear project_;
};
TORCH_MODULE(LatentAttention);

}  // namespace pipewright::engine
