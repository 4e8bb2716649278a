#pragma once

// The block of a plain transformer.

#include "pipewright/exec/models/generating_layer.hpp"
#include "pipewright/exec/models/group_layers.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace pipewright::exec {

/// Pre-norm: attention and a perceptron four times as wide, each around a residual, of [batch,
/// tokens, hidden]. Shards share out heads and the perceptron's width.
class PlainBlock : public Layer {
 public:
  /// `causal`: no token sees a later one.
  PlainBlock(int hidden, int heads, bool causal, const ShardPlace& place, Tokens tokens);

  at::Tensor forward(const at::Tensor& input, const CallContext& context) override;
  std::vector<CutParameter> cut_parameters() const override;

 protected:
  /// As GeneratingLayer has it, of a causal block.
  at::Tensor next_tokens(const at::Tensor& next, SequenceMemory& memory);

 private:
  template <class Attend>
  at::Tensor through(const at::Tensor& input, const Attend& attend);
  at::Tensor attended(const at::Tensor& qkv, bool core_again) const;

  ShardPlace place_;
  Tokens tokens_;
  std::int64_t head_width_;
  bool causal_;
  GroupNorm norm1_, norm2_;
  ColumnLinear qkv_;
  RowLinear project_;
  ColumnLinear up_;
  RowLinear down_;
};

}  // namespace pipewright::exec
