#pragma once

// The block of a standard transformer.

#include "pipewright/engine/models/generating_layer.hpp"
#include "pipewright/engine/models/group_layers.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace pipewright::engine {

/// A pre-norm block: attention and an MLP four times as wide, each with a residual connection, on
/// [batch, tokens, hidden]. Tensor-parallel ranks partition the heads and the MLP's width.
class PlainBlock : public exec::Layer {
 public:
  /// `causal`: tokens do not see later ones.
  PlainBlock(int hidden, int heads, bool causal, const exec::TensorParallelPlace& place,
             exec::Tokens tokens);

  at::Tensor forward(const at::Tensor& input, const exec::CallContext& context) override;
  std::vector<exec::CutParameter> cut_parameters() const override;

 protected:
  /// Decodes as GeneratingLayer::decode_step does. The block must be causal.
  at::Tensor next_tokens(const at::Tensor& next, KvCache& memory);

 private:
  template <class Attend>
  at::Tensor through(const at::Tensor& input, const Attend& attend);
  at::Tensor attended(const at::Tensor& qkv, bool core_again) const;

  exec::TensorParallelPlace place_;
  exec::Tokens tokens_;
  std::int64_t head_width_;
  bool causal_;
  GroupNorm norm1_, norm2_;
  ColumnLinear qkv_;
  RowLinear project_;
  ColumnLinear up_;
  RowLinear down_;
};

}  // namespace pipewright::engine
