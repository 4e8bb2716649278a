#pragma once

// What layers that shards share out are made of (Megatron-LM, arXiv 1909.08053): linear layers cut
// along their outputs or their inputs, and an embedding cut by words. A shard computes the groups
// of its own one after the other, in the same pieces in which serial training with as many groups
// does. With one group each is LibTorch's module of its name.

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/exec/training/shard_group.hpp"

namespace pipewright::exec {

/// Cut along its outputs: each group has outputs of its own. `blocks`: equal parts of the outputs
/// that are shared out each, as queries, keys and values are.
class ColumnLinearImpl final : public torch::nn::LinearImpl {
 public:
  ColumnLinearImpl(std::int64_t in, std::int64_t out, const ShardPlace& place, int blocks = 1);

  /// What the groups of this shard make of an input each: [batch, …, outputs of the group].
  Tensors of_groups(const Tensors& inputs) const;
  /// For a layer that registers it by this name.
  std::vector<CutParameter> cut_parameters(const std::string& name) const;

 private:
  ShardPlace place_;
  std::int64_t out_;
  int blocks_;
};

/// Cut along its inputs: what the groups give is added up, and then the bias is added.
class RowLinearImpl final : public torch::nn::LinearImpl {
 public:
  RowLinearImpl(std::int64_t in, std::int64_t out, const ShardPlace& place);

  /// Of an input for each group of this shard, [batch, …, inputs of the group], the sum over all.
  at::Tensor sum_over(const Tensors& inputs) const;
  std::vector<CutParameter> cut_parameters(const std::string& name) const;

 private:
  ShardPlace place_;
  std::int64_t in_;
};

/// Cut by words.
class GroupEmbeddingImpl final : public torch::nn::EmbeddingImpl {
 public:
  GroupEmbeddingImpl(std::int64_t words, std::int64_t width, const ShardPlace& place);

  /// int64 [batch, …] to [batch, …, width]. Throws InputError where a token is no word.
  at::Tensor rows_of(const at::Tensor& tokens) const;
  std::vector<CutParameter> cut_parameters(const std::string& name) const;

 private:
  ShardPlace place_;
  std::int64_t words_;
};

TORCH_MODULE(ColumnLinear);
TORCH_MODULE(RowLinear);
TORCH_MODULE(GroupEmbedding);

/// Of heads side by side, each for itself: no token sees a later one. `queries` [batch, sequence,
/// heads · width], `keys` and `values` the same, or with fewer heads, each of which is that of
/// equally many of queries in a row. `core_again`: the backward computes scores anew.
at::Tensor causal_attention(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, std::int64_t width, bool core_again);

}  // namespace pipewright::exec
