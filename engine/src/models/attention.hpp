#pragma once

// What a decoder's layer has of attention. Shards share out the heads.

#include <torch/nn/module.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/engine/models/causal_attention.hpp"
#include "pipewright/engine/models/group_layers.hpp"
#include "rotation.hpp"

namespace pipewright::engine {

/// What becomes of queries, keys and values of the heads of a group.
using MixHeads = std::function<at::Tensor(std::size_t group, const at::Tensor& queries,
                                          const at::Tensor& keys, const at::Tensor& values)>;

/// None: all of it.
using PartOfSequence = std::optional<Rotation::Part>;

/// Queries, keys and values of the hidden state, with fewer heads of keys and values than of
/// queries where the model has them.
class AttentionImpl final : public torch::nn::Module {
 public:
  AttentionImpl(const plan::TransformerConfig& config, int layer, const exec::ShardPlace& place,
                exec::Tokens tokens);

  /// [batch, tokens, hidden], of this shard's tokens. `documents`: as Attending has them;
  /// `core_again`: as causal_attention has it.
  at::Tensor forward(const at::Tensor& input, const at::Tensor& documents, bool core_again);
  /// Of a sequence's tokens that come next.
  at::Tensor go_on(const at::Tensor& input, SequenceMemory& memory);
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;

 private:
  at::Tensor mixed(const at::Tensor& input, const PartOfSequence& part, const MixHeads& mix);
  exec::Tensors placed(exec::Tensors groups, const GroupNorm& norm, const PartOfSequence& part);

  exec::ShardPlace place_;
  exec::Tokens tokens_;
  Attending how_;
  bool turns_;
  Rotation rotation_;
  ColumnLinear query_, key_, value_;
  RowLinear project_;
  GroupNorm query_norm_{nullptr}, key_norm_{nullptr};
};
TORCH_MODULE(Attention);

/// Keys and values of all heads come from a few channels, and queries may as well; a further part
/// of keys, which all heads share, is turned by positions (DeepSeek-V2, arXiv 2405.04434).
class LatentAttentionImpl final : public torch::nn::Module {
 public:
  LatentAttentionImpl(const plan::TransformerConfig& config, int layer,
                      const exec::ShardPlace& place, exec::Tokens tokens);

  at::Tensor forward(const at::Tensor& input, const at::Tensor& documents, bool core_again);
  at::Tensor go_on(const at::Tensor& input, SequenceMemory& memory);
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;

 private:
  /// Of a group.
  struct Heads {
    at::Tensor queries, keys, values;
  };
  at::Tensor mixed(const at::Tensor& input, const PartOfSequence& part, const MixHeads& mix);
  Heads heads_of(const at::Tensor& queries, const at::Tensor& keys_and_values,
                 const at::Tensor& shared_key, const PartOfSequence& part);

  exec::ShardPlace place_;
  exec::Tokens tokens_;
  Attending how_;
  std::int64_t rank_, channels_, turning_, values_;  // of the latent, a head's keys and values
  Rotation rotation_;
  GroupLinear query_down_{nullptr}, latent_down_;
  GroupNorm query_norm_{nullptr}, latent_norm_{nullptr};
  ColumnLinear query_, latent_up_;
  RowLinear project_;
};
TORCH_MODULE(LatentAttention);

}  // namespace pipewright::engine
