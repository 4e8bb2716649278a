#include "pipewright/exec/models/gpt.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/normalization.h>

#include "pipewright/exec/data/text.hpp"
#include "pipewright/exec/models/group_layers.hpp"
#include "pipewright/exec/models/model_builder.hpp"
#include "pipewright/exec/training/group_cross_entropy.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/gpt_model.hpp"

namespace pipewright::exec {
namespace {

namespace nn = torch::nn;

class Embedding final : public Layer {
 public:
  Embedding(const plan::GptShape& shape, const ShardPlace& place)
      : tokens_(register_module("tokens", GroupEmbedding(shape.vocabulary, shape.hidden, place))),
        positions_(register_module("positions", nn::Embedding(shape.sequence, shape.hidden))) {}

  at::Tensor forward(const at::Tensor& input, const CallContext&) override {
    return tokens_->rows_of(input) +
           positions_->forward(at::arange(input.size(1), input.options().dtype(at::kLong)));
  }
  std::vector<CutParameter> cut_parameters() const override {
    return tokens_->cut_parameters("tokens");
  }

 private:
  GroupEmbedding tokens_;
  nn::Embedding positions_;
};

/// Pre-norm transformer block: attention and a two-layer perceptron, each around a residual. Shards
/// share out heads and the perceptron's width.
class Block final : public Layer {
 public:
  Block(const plan::GptShape& shape, const ShardPlace& place)
      : place_(place),
        head_width_(shape.hidden / shape.heads),
        norm1_(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({shape.hidden})))),
        norm2_(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({shape.hidden})))),
        qkv_(register_module("qkv", ColumnLinear(shape.hidden, 3 * shape.hidden, place, 3))),
        project_(register_module("project", RowLinear(shape.hidden, shape.hidden, place))),
        up_(register_module("up", ColumnLinear(shape.hidden, 4 * shape.hidden, place))),
        down_(register_module("down", RowLinear(4 * shape.hidden, shape.hidden, place))) {}

  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    Tensors mixed;
    for (const at::Tensor& qkv : qkv_->of_groups(for_own_groups(norm1_->forward(input), place_))) {
      const auto parts = qkv.chunk(3, -1);
      mixed.push_back(
          causal_attention(parts[0], parts[1], parts[2], head_width_, context.selective_recompute));
    }
    const at::Tensor attended = input + project_->sum_over(mixed);
    Tensors wide = up_->of_groups(for_own_groups(norm2_->forward(attended), place_));
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
  std::int64_t head_width_;
  nn::LayerNorm norm1_, norm2_;
  ColumnLinear qkv_;
  RowLinear project_;
  ColumnLinear up_;
  RowLinear down_;
};

/// Gives the logits of each group of words that the shard has.
class Head final : public Layer {
 public:
  Head(const plan::GptShape& shape, const ShardPlace& place)
      : place_(place),
        norm_(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({shape.hidden})))),
        logits_(register_module("logits", ColumnLinear(shape.hidden, shape.vocabulary, place))) {}

  Tensors forward_all(const Tensors& inputs, const CallContext&) override {
    return logits_->of_groups(for_own_groups(norm_->forward(inputs.at(0)), place_));
  }
  /// Of all words of the shard.
  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    return at::cat(forward_all({input}, context), -1);
  }
  std::vector<CutParameter> cut_parameters() const override {
    return logits_->cut_parameters("logits");
  }

 private:
  ShardPlace place_;
  nn::LayerNorm norm_;
  ColumnLinear logits_;
};

/// A layer and its shards.
template <class Kind>
LayerSpec layer_of(std::string name, const plan::GptShape& shape) {
  const auto build_shard = [shape, name](const ShardPlace& place) -> std::shared_ptr<Layer> {
    const auto faults = plan::faults_of_gpt_cut(shape, place.groups);
    if (!faults.empty())
      throw plan::InputError(fmt::format("layer {}: {}", name, faults.front()));
    return std::make_shared<Kind>(shape, place);
  };
  return {.name = std::move(name),
          .build = [shape] { return std::make_shared<Kind>(shape, ShardPlace{}); },
          .build_shard = build_shard};
}

}  // namespace

std::vector<LayerSpec> gpt_layers(const plan::GptShape& shape) {
  std::vector<LayerSpec> layers;
  layers.push_back(layer_of<Embedding>("embedding", shape));
  for (int i = 0; i < shape.blocks; ++i)
    layers.push_back(layer_of<Block>(fmt::format("block{}", i), shape));
  layers.push_back(layer_of<Head>("head", shape));
  layers.back().shard_loss = [words = shape.vocabulary](const Tensors& outputs,
                                                        const Tensors& targets,
                                                        const ShardPlace& place) {
    return cross_entropy_over_groups(outputs, targets.front(), words, place);
  };
  return layers;
}

template <>
const ModelBuilder& builder_of<plan::GptShape>() {
  static const ModelBuilder gpt = declare_builder<plan::GptShape>(
      {.layers = [](const plan::GptShape& shape, int) { return gpt_layers(shape); },
       .open = [](const plan::GptShape& shape, const std::filesystem::path& file,
                  const BatchShape& batch) { return open_text(file, shape.sequence, batch); },
       .loss = cross_entropy});
  return gpt;
}

}  // namespace pipewright::exec
