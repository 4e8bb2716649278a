#pragma once

// The feed-forward that all tokens meet: of a dense layer, or the shared experts of a mixture.

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "pipewright/engine/models/group_layers.hpp"

namespace pipewright::engine {

/// What goes into the last product: gates, where there are some, are bent and multiplied, and else
/// what is wide is bent.
at::Tensor activated(plan::Activation activation, const at::Tensor& wide, const at::Tensor& gates);

/// Shards share out the width.
class FeedForwardImpl final : public torch::nn::Module {
 public:
  /// A dense layer's.
  FeedForwardImpl(const plan::TransformerConfig& config, const exec::ShardPlace& place,
                  exec::Tokens tokens)
      : FeedForwardImpl(config, config.feed_forward, place, tokens) {}
  FeedForwardImpl(const plan::TransformerConfig& config, int width, const exec::ShardPlace& place,
                  exec::Tokens tokens);

  /// [batch, tokens, hidden], of this shard's tokens.
  at::Tensor forward(const at::Tensor& input) const;
  /// What each group of this shard adds to the sum, which has no bias yet, of an input for each.
  exec::Tensors of_groups(const exec::Tensors& inputs) const;
  at::Tensor with_bias(const at::Tensor& sum) const { return down_->with_bias(sum); }
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;

 private:
  exec::Tensors activated_groups(const exec::Tensors& inputs) const;

  exec::ShardPlace place_;
  exec::Tokens tokens_;
  plan::Activation activation_;
  ColumnLinear up_;
  RowLinear down_;
  ColumnLinear gate_{nullptr};
};
TORCH_MODULE(FeedForward);

/// Those of a part of a layer, behind those of others.
void add_cuts(std::vector<exec::CutParameter>& all, const std::vector<exec::CutParameter>& more);

}  // namespace pipewright::engine
