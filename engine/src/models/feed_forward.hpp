#pragma once

// The feed-forward block that processes all tokens: of a dense layer, or the shared experts of a
// mixture.

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "pipewright/engine/models/group_layers.hpp"

namespace pipewright::engine {

/// Returns the input of the down projection: the activated gates times `wide`, or the activated
/// `wide` if there are no gates.
at::Tensor activated(plan::Activation activation, const at::Tensor& wide, const at::Tensor& gates);

/// A feed-forward block whose width is partitioned among tensor-parallel ranks.
class FeedForwardImpl final : public torch::nn::Module {
 public:
  /// Builds the block of a dense layer.
  FeedForwardImpl(const plan::TransformerConfig& config, const exec::TensorParallelPlace& place,
                  exec::Tokens tokens)
      : FeedForwardImpl(config, config.feed_forward, place, tokens) {}
  FeedForwardImpl(const plan::TransformerConfig& config, int width,
                  const exec::TensorParallelPlace& place, exec::Tokens tokens);

  /// Takes and returns [batch, tokens, hidden] of this rank's tokens.
  at::Tensor forward(const at::Tensor& input) const;
  /// Computes each local group's partial sum, without the bias, from its own input.
  exec::Tensors of_groups(const exec::Tensors& inputs) const;
  at::Tensor with_bias(const at::Tensor& sum) const { return down_->with_bias(sum); }
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;

 private:
  exec::Tensors activated_groups(const exec::Tensors& inputs) const;

  exec::TensorParallelPlace place_;
  exec::Tokens tokens_;
  plan::Activation activation_;
  ColumnLinear up_;
  RowLinear down_;
  ColumnLinear gate_{nullptr};
};
TORCH_MODULE(FeedForward);

/// Appends `more` to `all`.
void add_cuts(std::vector<exec::CutParameter>& all, const std::vector<exec::CutParameter>& more);

}  // namespace pipewright::engine
