#include "pipewright/engine/models/gpt.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "lm_head.hpp"
#include "pipewright/engine/models/group_layers.hpp"
#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/exec/data/text.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "plain_block.hpp"

namespace pipewright::engine {
namespace {

class Embedding final : public exec::Layer, public GeneratingLayer {
 public:
  Embedding(const plan::GptShape& shape, const exec::TensorParallelPlace& place,
            exec::Tokens tokens)
      : tokens_(register_module("tokens",
                                GroupEmbedding(shape.vocabulary, shape.hidden, place, tokens))),
        positions_(register_module("positions",
                                   GroupPositions(shape.sequence, shape.hidden, place, tokens))),
        longest_(shape.sequence) {}

  at::Tensor forward(const at::Tensor& input, const exec::CallContext&) override {
    return positions_->added_to(tokens_->rows_of(input));
  }
  at::Tensor decode_step(const at::Tensor& next, KvCache& memory) override {
    return positions_->added_to(tokens_->rows_of(next), next_places(next, memory));
  }
  void check_length(std::int64_t, std::int64_t all) const override {
    require_positions("model.sequence", longest_, all);
  }
  void check_tokens(const std::vector<std::int64_t>& tokens) const override {
    tokens_->require_words(at::tensor(tokens, at::kLong));
  }
  std::vector<exec::CutParameter> cut_parameters() const override {
    return tokens_->cut_parameters("tokens");
  }

 private:
  GroupEmbedding tokens_;
  GroupPositions positions_;
  std::int64_t longest_;
};

/// A causal block.
class Block final : public PlainBlock, public GeneratingLayer {
 public:
  Block(const plan::GptShape& shape, const exec::TensorParallelPlace& place, exec::Tokens tokens)
      : PlainBlock(shape.hidden, shape.heads, /*causal=*/true, place, tokens) {}

  at::Tensor decode_step(const at::Tensor& next, KvCache& memory) override {
    return next_tokens(next, memory);
  }
};

class GptHead final : public LmHead {
 public:
  GptHead(const plan::GptShape& shape, const exec::TensorParallelPlace& place, exec::Tokens tokens)
      : LmHead({.norm = {.width = shape.hidden}, .words = shape.vocabulary}, place, tokens) {}
};

template <class Kind>
exec::LayerSpec layer_of(std::string name, const char* kind, const plan::GptShape& shape,
                         exec::Tokens tokens) {
  return layer_with_shards<Kind>(
      std::move(name),
      fmt::format("gpt {}: hidden {}, heads {}, sequence {}, vocabulary {}", kind, shape.hidden,
                  shape.heads, shape.sequence, shape.vocabulary),
      shape, tokens, plan::faults_of_gpt_cut);
}

}  // namespace

std::vector<exec::LayerSpec> gpt_layers(const plan::GptShape& shape, exec::Tokens tokens) {
  std::vector<exec::LayerSpec> layers;
  layers.push_back(layer_of<Embedding>("embedding", "embedding", shape, tokens));
  for (int i = 0; i < shape.blocks; ++i)
    layers.push_back(layer_of<Block>(fmt::format("block{}", i), "block", shape, tokens));
  layers.push_back(layer_of<GptHead>("head", "head", shape, tokens));
  layers.back().shard_loss = loss_over_words(shape.vocabulary);
  return layers;
}

template <>
const ModelBuilder& builder_of<plan::GptShape>() {
  static const ModelBuilder gpt = declare_builder<plan::GptShape>(
      {.layers = [](const plan::GptShape& shape,
                    const LayerChoice& choice) { return gpt_layers(shape, choice.tokens); },
       .open =
           [](const plan::GptShape& shape, const std::filesystem::path& file,
              const exec::BatchShape& batch) {
             return exec::open_text(file, shape.sequence, batch);
           }});
  return gpt;
}

}  // namespace pipewright::engine
