#include "pipewright/exec/models/transformer.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/init.h>

#include <nlohmann/json.hpp>

#include "device/stream.hpp"
#include "mixture.hpp"
#include "pipewright/exec/data/tokens.hpp"
#include "pipewright/exec/models/group_layers.hpp"
#include "pipewright/exec/models/model_builder.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"
#include "word_scores.hpp"

namespace pipewright::exec {
namespace {

namespace nn = torch::nn;
using plan::TransformerConfig;
using plan::TransformerShape;

/// Turns pairs of a head's channels by angles that grow with the token's position (Su et al., arXiv
/// 2104.09864).
class Rotation {
 public:
  /// [batch, sequence, heads, channels].
  at::Tensor operator()(const at::Tensor& heads) {
    make_tables(heads);
    const auto halves = heads.chunk(2, -1);
    return heads * cosine_ + at::cat({-halves[1], halves[0]}, -1) * sine_;
  }

 private:
  /// [sequence, 1, channels] each, made once.
  void make_tables(const at::Tensor& heads) {
    constexpr double base = 10'000;
    const std::int64_t length = heads.size(1), channels = heads.size(3);
    if (cosine_.defined() && cosine_.size(0) == length && cosine_.dtype() == heads.dtype() &&
        cosine_.device() == heads.device())
      return;
    const at::Tensor speeds =
        at::pow(base, -at::arange(0, channels, 2, at::kDouble) / static_cast<double>(channels));
    const at::Tensor angles =
        at::outer(at::arange(length, at::kDouble), speeds).repeat({1, 2}).unsqueeze(1);
    cosine_ = put_on(angles.cos().to(heads.scalar_type()), heads.device());
    sine_ = put_on(angles.sin().to(heads.scalar_type()), heads.device());
  }

  at::Tensor cosine_, sine_;
};

class TokenTable final : public Layer {
 public:
  TokenTable(const TransformerShape& shape, const ShardPlace& place, Tokens tokens)
      : tokens_(register_module("tokens", GroupEmbedding(shape.config.vocabulary,
                                                         shape.config.hidden, place, tokens))) {
    constexpr double deviation = 0.02;
    nn::init::normal_(tokens_->weight, 0, deviation);
    if (!shape.config.learned_positions)
      return;
    positions_ = register_module(
        "positions", GroupPositions(shape.config.longest, shape.config.hidden, place, tokens));
    nn::init::normal_(positions_->weight, 0, deviation);
  }

  at::Tensor forward(const at::Tensor& input, const CallContext&) override {
    const at::Tensor rows = tokens_->rows_of(input);
    return positions_.is_empty() ? rows : positions_->added_to(rows);
  }
  std::vector<CutParameter> cut_parameters() const override {
    return tokens_->cut_parameters("tokens");
  }

 private:
  GroupEmbedding tokens_;
  GroupPositions positions_{nullptr};
};

/// Shards share out the heads.
class AttentionImpl final : public nn::Module {
 public:
  AttentionImpl(const TransformerConfig& c, const ShardPlace& place, Tokens tokens)
      : place_(place),
        tokens_(tokens),
        channels_(c.head_channels),
        turns_(!c.learned_positions),
        query_(register_module("query", columns(c, c.heads * c.head_channels, place))),
        key_(register_module("key", columns(c, c.kv_heads * c.head_channels, place))),
        value_(register_module("value", columns(c, c.kv_heads * c.value_channels, place))),
        project_(register_module("project", RowLinear(c.heads * c.value_channels, c.hidden, place,
                                                      c.projection_bias, tokens))) {
    if (!c.head_norms)
      return;
    query_norm_ = register_module("query_norm", GroupNorm(c.norm, c.head_channels, place));
    key_norm_ = register_module("key_norm", GroupNorm(c.norm, c.head_channels, place));
  }

  at::Tensor forward(const at::Tensor& input, bool core_again) {
    const Tensors inputs = for_own_groups(input, place_, tokens_);
    const Tensors queries = placed(query_->of_groups(inputs), query_norm_);
    const Tensors keys = placed(key_->of_groups(inputs), key_norm_);
    const Tensors values = value_->of_groups(inputs);
    Tensors mixed;
    for (std::size_t own = 0; own < queries.size(); ++own)
      mixed.push_back(
          causal_attention(queries[own], keys[own], values[own], channels_, core_again));
    return project_->sum_over(mixed);
  }
  std::vector<CutParameter> cut_parameters(const std::string& name) const {
    std::vector<CutParameter> all;
    add_cuts(all, query_->cut_parameters(name + ".query"));
    add_cuts(all, key_->cut_parameters(name + ".key"));
    add_cuts(all, value_->cut_parameters(name + ".value"));
    add_cuts(all, project_->cut_parameters(name + ".project"));
    return all;
  }

 private:
  static ColumnLinear columns(const TransformerConfig& c, int width, const ShardPlace& place) {
    return ColumnLinear(c.hidden, width, place, /*blocks=*/1, c.query_bias);
  }
  /// Normed head by head and turned, where the model does that.
  Tensors placed(Tensors groups, const GroupNorm& norm) {
    for (at::Tensor& group : groups)
      group = group.view({group.size(0), group.size(1), -1, channels_});
    if (!norm.is_empty())
      groups = norm->of_groups(groups);
    for (at::Tensor& group : groups)
      group = (turns_ ? rotation_(group) : group).flatten(2);
    return groups;
  }

  ShardPlace place_;
  Tokens tokens_;
  std::int64_t channels_;
  bool turns_;
  Rotation rotation_;
  ColumnLinear query_, key_, value_;
  RowLinear project_;
  GroupNorm query_norm_{nullptr}, key_norm_{nullptr};
};
TORCH_MODULE(Attention);

/// Attention and a feed-forward of this kind, each behind a norm and around a residual.
template <class Kind>
class DecoderLayer final : public Layer {
 public:
  DecoderLayer(const TransformerShape& shape, const ShardPlace& place, Tokens tokens)
      : norm1_(register_module("norm1",
                               GroupNorm(shape.config.norm, shape.config.hidden, place, tokens))),
        attention_(register_module("attention", Attention(shape.config, place, tokens))),
        norm2_(register_module("norm2",
                               GroupNorm(shape.config.norm, shape.config.hidden, place, tokens))),
        feed_forward_(register_module("feed_forward", Kind(shape.config, place, tokens))) {}

  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    const at::Tensor attended =
        input + attention_->forward(norm1_->forward(input), context.selective_recompute);
    return attended + feed_forward_->forward(norm2_->forward(attended));
  }
  std::vector<CutParameter> cut_parameters() const override {
    auto all = attention_->cut_parameters("attention");
    add_cuts(all, feed_forward_->cut_parameters("feed_forward"));
    return all;
  }

  std::vector<ParameterAlias> aliases() override {
    if constexpr (std::is_same_v<Kind, Mixture>)
      return feed_forward_->aliases("feed_forward");
    return {};
  }

 private:
  GroupNorm norm1_;
  Attention attention_;
  GroupNorm norm2_;
  Kind feed_forward_;
};

class Head final : public WordScores {
 public:
  Head(const TransformerShape& shape, const ShardPlace& place, Tokens tokens)
      : WordScores({.norm = shape.config.norm,
                    .hidden = shape.config.hidden,
                    .words = shape.config.vocabulary,
                    .has_bias = false},
                   place, tokens) {}
};

/// All sizes but how many layers there are, and which.
std::string decoder_kind(const char* word, const TransformerShape& shape) {
  plan::Json sizes = plan::to_json(plan::ModelShape(shape));
  for (const char* const of_all : {"name", "layers", "sparse"})
    sizes.erase(of_all);
  return fmt::format("transformer {}: {}", word, sizes.dump());
}

template <class Kind>
LayerSpec decoder_part(std::string name, const char* kind, const TransformerShape& shape,
                       Tokens tokens) {
  return layer_with_shards<Kind>(std::move(name), decoder_kind(kind, shape), shape, tokens,
                                 plan::faults_of_transformer_cut);
}

LayerSpec decoder_layer(int index, const TransformerShape& shape, Tokens tokens) {
  const auto name = fmt::format("layer{}", index);
  if (!shape.config.has_experts(index))
    return decoder_part<DecoderLayer<FeedForward>>(name, "layer", shape, tokens);
  LayerSpec layer = decoder_part<DecoderLayer<Mixture>>(name, "mixture", shape, tokens);
  layer.varies = layer.has_experts = true;
  return layer;
}

void tie(LayerSpec& layer, const char* weight) {
  layer.tied_key = "embedding";
  layer.tied_weight = weight;
}

}  // namespace

std::vector<LayerSpec> transformer_layers(const TransformerShape& shape, Tokens tokens) {
  const auto fields = plan::only_predicted(shape);
  if (!fields.empty())
    throw plan::InputError(fmt::format(
        "nothing here builds a transformer with such values of {}: they are planned and predicted "
        "only",
        fmt::join(fields, ", ")));
  std::vector<LayerSpec> layers{decoder_part<TokenTable>("embedding", "embedding", shape, tokens)};
  for (int i = 0; i < shape.config.layers; ++i)
    layers.push_back(decoder_layer(i, shape, tokens));
  layers.push_back(decoder_part<Head>("head", "head", shape, tokens));
  layers.back().shard_loss = loss_over_words(shape.config.vocabulary);
  if (shape.config.tied) {
    tie(layers.front(), "tokens.weight");
    tie(layers.back(), "logits.weight");
  }
  return layers;
}

template <>
const ModelBuilder& builder_of<TransformerShape>() {
  static const ModelBuilder transformer = declare_builder<TransformerShape>(
      {.layers = [](const TransformerShape& shape,
                    const LayerChoice& choice) { return transformer_layers(shape, choice.tokens); },
       .open =
           [](const TransformerShape& shape, const std::filesystem::path& file,
              const BatchShape& batch) {
             return open_tokens(file, shape.sequence, shape.config.vocabulary, batch);
           },
       .loss = cross_entropy});
  return transformer;
}

}  // namespace pipewright::exec
