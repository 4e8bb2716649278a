#pragma once

// What layers that shards share out are made of (Megatron-LM, arXiv 1909.08053): linear layers cut
// along their outputs or their inputs, an embedding cut by words, and what of tokens that are cut
// each shard has whole. A shard computes the groups of its own one after the other, in the same
// pieces in which serial training with as many groups does. With one group each is LibTorch's
// module of its name.

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/exec/training/shard_group.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::engine {

/// Cut along its outputs: each group has outputs of its own. `blocks`: equal parts of the outputs
/// that are shared out each, as queries, keys and values are.
class ColumnLinearImpl final : public torch::nn::LinearImpl {
 public:
  ColumnLinearImpl(std::int64_t in, std::int64_t out, const exec::ShardPlace& place, int blocks = 1,
                   bool has_bias = true);

  /// What the groups of this shard make of an input each: [batch, …, outputs of the group].
  exec::Tensors of_groups(const exec::Tensors& inputs) const;
  /// For a layer that registers it by this name.
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;

 private:
  exec::ShardPlace place_;
  std::int64_t out_;
  int blocks_;
};

/// Cut along its inputs: what the groups give is added up, and then the bias is added.
class RowLinearImpl final : public torch::nn::LinearImpl {
 public:
  RowLinearImpl(std::int64_t in, std::int64_t out, const exec::ShardPlace& place,
                bool has_bias = true, exec::Tokens tokens = exec::Tokens::Whole);

  /// Of an input for each group of this shard, [batch, tokens, inputs of the group], the sum over
  /// all.
  at::Tensor sum_over(const exec::Tensors& inputs) const;
  /// What each group of this shard adds to the sum, which has no bias yet.
  exec::Tensors of_groups(const exec::Tensors& inputs) const;
  /// [batch, tokens, outputs], of this shard's tokens.
  at::Tensor with_bias(const at::Tensor& sum) const;
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;

 private:
  exec::ShardPlace place_;
  std::int64_t in_;
  exec::Tokens tokens_;
};

/// Not cut: all shards have it, and each multiplies the tokens that it has.
class GroupLinearImpl final : public torch::nn::LinearImpl {
 public:
  GroupLinearImpl(std::int64_t in, std::int64_t out, const exec::ShardPlace& place, bool has_bias,
                  exec::Tokens tokens);

  /// [batch, tokens, inputs], of this shard's tokens.
  at::Tensor forward(const at::Tensor& input) const;

 private:
  exec::ShardPlace place_;
  exec::Tokens tokens_;
};

/// Cut by words.
class GroupEmbeddingImpl final : public torch::nn::EmbeddingImpl {
 public:
  /// `padding`: a word whose row gets no gradient here; -1: none.
  GroupEmbeddingImpl(std::int64_t words, std::int64_t width, const exec::ShardPlace& place,
                     exec::Tokens tokens = exec::Tokens::Whole, std::int64_t padding = -1);

  /// int64 [batch, tokens] to [batch, tokens, width]. Throws InputError where a token is no word.
  at::Tensor rows_of(const at::Tensor& tokens) const;
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;

 private:
  exec::ShardPlace place_;
  std::int64_t words_;
  exec::Tokens tokens_;
  std::int64_t padding_;
};

/// A learned row for each position, which all shards have.
class GroupPositionsImpl final : public torch::nn::EmbeddingImpl {
 public:
  GroupPositionsImpl(std::int64_t longest, std::int64_t width, const exec::ShardPlace& place,
                     exec::Tokens tokens = exec::Tokens::Whole);

  /// [batch, tokens, width], of this shard's tokens. `places`: int64 [batch, all tokens], the
  /// position of each; undefined: from 0 on.
  at::Tensor added_to(const at::Tensor& rows, const at::Tensor& places = {}) const;

 private:
  exec::ShardPlace place_;
  exec::Tokens tokens_;
};

/// A norm over the last dimension, in sizes.
struct NormSizes {
  plan::NormKind kind = plan::NormKind::Layer;
  std::int64_t width = 0;
  double epsilon = 1e-5;
  bool plus_one = false;  // it multiplies by its weight and 1; the weight begins as zeros
};
inline NormSizes norm_of(const plan::TransformerConfig& config, std::int64_t width) {
  return {config.norm, width, config.norm_epsilon, config.norm_plus_one};
}

/// What a norm learns, which all shards have.
class GroupNormImpl final : public torch::nn::Module {
 public:
  GroupNormImpl(const NormSizes& sizes, const exec::ShardPlace& place,
                exec::Tokens tokens = exec::Tokens::Whole);

  /// [batch, tokens, width], of this shard's tokens.
  at::Tensor forward(const at::Tensor& input) const;
  /// Of something of each of its groups.
  exec::Tensors of_groups(const exec::Tensors& inputs) const;

 private:
  at::Tensor normed(const at::Tensor& input, const at::Tensor& weight,
                    const at::Tensor& bias) const;

  NormSizes sizes_;
  at::Tensor weight_, bias_;  // no bias: a root-mean-square norm
  exec::ShardPlace place_;
  exec::Tokens tokens_;
};

TORCH_MODULE(ColumnLinear);
TORCH_MODULE(RowLinear);
TORCH_MODULE(GroupLinear);
TORCH_MODULE(GroupEmbedding);
TORCH_MODULE(GroupPositions);
TORCH_MODULE(GroupNorm);

/// A layer of class `Kind`, which is made of a model's shape, the place of a shard, and what that
/// has of the tokens. Parts of which `faults_of_cut` has something to say are refused by
/// InputError, and so are tokens that do not divide. `kind`: as in LayerSpec.
template <class Kind, class Shape>
exec::LayerSpec layer_with_shards(std::string name, std::string kind, const Shape& shape,
                                  exec::Tokens tokens,
                                  std::vector<std::string> (*faults_of_cut)(const Shape&,
                                                                            int parts)) {
  const auto build_shard = [=](const exec::ShardPlace& place) -> std::shared_ptr<exec::Layer> {
    auto faults = faults_of_cut(shape, place.groups);
    if constexpr (requires { shape.sequence; })
      if (tokens == exec::Tokens::Cut && shape.sequence % place.groups != 0)
        faults.push_back("pipeline.sequence_parallel: " + std::to_string(shape.sequence) +
                         " tokens cannot be divided equally into " + std::to_string(place.groups) +
                         " parts");
    if (!faults.empty())
      throw plan::InputError("layer " + name + ": " + faults.front());
    return std::make_shared<Kind>(shape, place, tokens);
  };
  return {
      .name = name,
      .build =
          [=] { return std::make_shared<Kind>(shape, exec::ShardPlace{}, exec::Tokens::Whole); },
      .build_shard = build_shard,
      .kind = std::move(kind) + (tokens == exec::Tokens::Cut ? ", tokens cut" : "")};
}

}  // namespace pipewright::engine
