#pragma once

// The head of a language model whose vocabulary shards share out.

#include "pipewright/engine/models/generating_layer.hpp"
#include "pipewright/engine/models/group_layers.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace pipewright::engine {

/// A norm, and behind it the logits of each group of words that the shard has.
class WordScores : public exec::Layer, public GeneratingLayer {
 public:
  struct Sizes {
    NormSizes norm;
    std::int64_t words = 0;
    bool has_bias = true;
    double cap = 0;  // what logits approach as they grow; 0: none
  };
  WordScores(const Sizes& sizes, const exec::ShardPlace& place, exec::Tokens tokens);

  exec::Tensors forward_all(const exec::Tensors& inputs, const exec::CallContext& context) override;
  /// Of all words of the shard.
  at::Tensor forward(const at::Tensor& input, const exec::CallContext& context) override;
  at::Tensor go_on(const at::Tensor& next, SequenceMemory& memory) override;
  std::vector<exec::CutParameter> cut_parameters() const override;

 private:
  exec::ShardPlace place_;
  exec::Tokens tokens_;
  double cap_;
  GroupNorm norm_;
  ColumnLinear logits_;
};

/// For the spec of such a layer: the loss of what it gives, cross entropy over so many words.
decltype(exec::LayerSpec::shard_loss) loss_over_words(std::int64_t words);

}  // namespace pipewright::engine
