#include "pipewright/exec/models/gpt.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "pipewright/exec/data/text.hpp"
#include "pipewright/exec/models/group_layers.hpp"
#include "pipewright/exec/models/model_builder.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "word_scores.hpp"

namespace pipewright::exec {
namespace {

class Embedding final : public Layer {
 public:
  Embedding(const plan::GptShape& shape, const ShardPlace& place, Tokens tokens)
      : tokens_(register_module("tokens",
                                GroupEmbedding(shape.vocabulary, shape.hidden, place, tokens))),
        positions_(register_module("positions",
                                   GroupPositions(shape.sequence, shape.hidden, place, tokens))) {}

  at::Tensor forward(const at::Tensor& input, const CallContext&) override {
    return positions_->added_to(tokens_->rows_of(input));
  }
  std::vector<CutParameter> cut_parameters() const override {
    return tokens_->cut_parameters("tokens");
  }

 private:
  GroupEmbedding tokens_;
  GroupPositions positions_;
};

/// Pre-norm transformer block: attention and a two-layer perceptron, each around a residual. Shards
/// share out heads and the perceptron's width.
class Block final : public Layer {
 public:
  Block(const plan::GptShape& shape, const ShardPlace& place, Tokens tokens)
      : place_(place),
        tokens_(tokens),
        head_width_(shape.hidden / shape.heads),
        norm1_(
            register_module("norm1", GroupNorm(NormSizes{.width = shape.hidden}, place, tokens))),
        norm2_(
            register_module("norm2", GroupNorm(NormSizes{.width = shape.hidden}, place, tokens))),
        qkv_(register_module("qkv", ColumnLinear(shape.hidden, 3 * shape.hidden, place, 3))),
        project_(register_module("project", RowLinear(shape.hidden, shape.hidden, place,
                                                      /*has_bias=*/true, tokens))),
        up_(register_module("up", ColumnLinear(shape.hidden, 4 * shape.hidden, place))),
        down_(register_module("down", RowLinear(4 * shape.hidden, shape.hidden, place,
                                                /*has_bias=*/true, tokens))) {}

  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    Tensors mixed;
    for (const at::Tensor& qkv :
         qkv_->of_groups(for_own_groups(norm1_->forward(input), place_, tokens_))) {
      const auto parts = qkv.chunk(3, -1);
      mixed.push_back(causal_attention(parts[0], parts[1], parts[2], {.width = head_width_},
                                       context.selective_recompute));
    }
    const at::Tensor attended = input + project_->sum_over(mixed);
    Tensors wide = up_->of_groups(for_own_groups(norm2_->forward(attended), place_, tokens_));
    for (at::Tensor& of_group : wide)
      of_group = at::gelu(of_group);
    return attended + down_->sum_over(wide);
  }
  std::vector<CutParameter> cut_parameters() const override {
    std::vector<CutParameter> all;
    for (const auto& cuts : {qkv_->cut_parameters("qkv"), project_->cut_parameters("project"),
                             up_->cut_parameters("up"), down_->cut_parameters("down")})
      all.insert(all.end(), cuts.begin(), cuts.end());
    return all;
  }

 private:
  ShardPlace place_;
  Tokens tokens_;
  std::int64_t head_width_;
  GroupNorm norm1_, norm2_;
  ColumnLinear qkv_;
  RowLinear project_;
  ColumnLinear up_;
  RowLinear down_;
};

class GptHead final : public WordScores {
 public:
  GptHead(const plan::GptShape& shape, const ShardPlace& place, Tokens tokens)
      : WordScores({.norm = {.width = shape.hidden}, .words = shape.vocabulary}, place, tokens) {}
};

template <class Kind>
LayerSpec layer_of(std::string name, const char* kind, const plan::GptShape& shape, Tokens tokens) {
  return layer_with_shards<Kind>(
      std::move(name),
      fmt::format("gpt {}: hidden {}, heads {}, sequence {}, vocabulary {}", kind, shape.hidden,
                  shape.heads, shape.sequence, shape.vocabulary),
      shape, tokens, plan::faults_of_gpt_cut);
}

}  // namespace

std::vector<LayerSpec> gpt_layers(const plan::GptShape& shape, Tokens tokens) {
  std::vector<LayerSpec> layers;
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
       .open = [](const plan::GptShape& shape, const std::filesystem::path& file,
                  const BatchShape& batch) { return open_text(file, shape.sequence, batch); },
       .loss = cross_entropy});
  return gpt;
}

}  // namespace pipewright::exec
