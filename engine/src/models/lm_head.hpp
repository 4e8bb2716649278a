#pragma once

// A language model's head with a vocabulary-parallel output layer.

#include "pipewright/engine/models/generating_layer.hpp"
#include "pipewright/engine/models/group_layers.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace pipewright::engine {

/// A norm, followed by the logits of the vocabulary groups of this tensor-parallel rank.
class LmHead : public exec::Layer, public GeneratingLayer {
 public:
  struct Sizes {
    NormSizes norm;
    std::int64_t words = 0;
    bool has_bias = true;
    double cap = 0;  // tanh cap of the logits, which they approach as they grow; 0: none
  };
  LmHead(const Sizes& sizes, const exec::TensorParallelPlace& place, exec::Tokens tokens);

  exec::Tensors forward_all(const exec::Tensors& inputs, const exec::CallContext& context) override;
  /// Returns the logits of this rank's part of the vocabulary.
  at::Tensor forward(const at::Tensor& input, const exec::CallContext& context) override;
  at::Tensor decode_step(const at::Tensor& next, KvCache& memory) override;
  std::vector<exec::CutParameter> cut_parameters() const override;

 private:
  exec::TensorParallelPlace place_;
  exec::Tokens tokens_;
  double cap_;
  GroupNorm norm_;
  ColumnLinear logits_;
};

/// Returns the cross-entropy loss of such a layer's output, for its spec, over a vocabulary of
/// `words`.
decltype(exec::LayerSpec::shard_loss) loss_over_words(std::int64_t words);

}  // namespace pipewright::engine
