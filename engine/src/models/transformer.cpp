#include "pipewright/engine/models/transformer.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/init.h>

#include <nlohmann/json.hpp>

#include "attention.hpp"
#include "feed_forward.hpp"
#include "lm_head.hpp"
#include "mixture.hpp"
#include "pipewright/engine/models/causal_attention.hpp"
#include "pipewright/engine/models/group_layers.hpp"
#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/exec/data/tokens.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

namespace nn = torch::nn;
using plan::TransformerShape;

/// Returns the layer's first output followed by all its inputs but the first.
exec::Tensors followed_by_documents(at::Tensor first, const exec::Tensors& inputs) {
  exec::Tensors outputs{std::move(first)};
  outputs.insert(outputs.end(), inputs.begin() + 1, inputs.end());
  return outputs;
}

class TokenTable final : public exec::Layer, public GeneratingLayer {
 public:
  TokenTable(const TransformerShape& shape, const exec::TensorParallelPlace& place,
             exec::Tokens tokens)
      : tokens_(
            register_module("tokens", GroupEmbedding(shape.config.vocabulary, shape.config.hidden,
                                                     place, tokens, shape.config.padding_token))),
        scale_(shape.config.embedding_scale),
        longest_(shape.config.longest) {
    constexpr double deviation = 0.02;
    nn::init::normal_(tokens_->weight, 0, deviation);
    if (!shape.config.learned_positions)
      return;
    positions_ = register_module(
        "positions", GroupPositions(shape.config.longest, shape.config.hidden, place, tokens));
    nn::init::normal_(positions_->weight, 0, deviation);
  }

  /// Takes tokens and, for packed sequences, each token's document, which is passed on.
  exec::Tensors forward_all(const exec::Tensors& inputs, const exec::CallContext&) override {
    const at::Tensor rows = scaled_rows_of(inputs.at(0));
    if (positions_.is_empty())
      return followed_by_documents(rows, inputs);
    return followed_by_documents(
        positions_->added_to(rows,
                             inputs.size() > 1 ? places_in_documents(inputs[1]) : at::Tensor()),
        inputs);
  }
  at::Tensor forward(const at::Tensor& input, const exec::CallContext& context) override {
    return forward_all({input}, context).front();
  }
  at::Tensor decode_step(const at::Tensor& next, KvCache& memory) override {
    const at::Tensor rows = scaled_rows_of(next);
    return positions_.is_empty() ? rows : positions_->added_to(rows, next_places(next, memory));
  }
  void check_length(std::int64_t, std::int64_t all) const override {
    if (!positions_.is_empty())
      require_positions("model.max_sequence", longest_, all);
  }
  void check_tokens(const std::vector<std::int64_t>& tokens) const override {
    tokens_->require_words(at::tensor(tokens, at::kLong));
  }
  std::vector<exec::CutParameter> cut_parameters() const override {
    return tokens_->cut_parameters("tokens");
  }

 private:
  at::Tensor scaled_rows_of(const at::Tensor& input) const {
    const at::Tensor rows = tokens_->rows_of(input);
    // Rounded like the rows, as models were trained in 16 bits.
    return scale_ == 1 ? rows : rows * at::scalar_tensor(scale_, rows.options());
  }

  GroupEmbedding tokens_;
  double scale_;
  std::int64_t longest_;
  GroupPositions positions_{nullptr};
};

/// The shape of one decoder layer, which may differ from those of other layers.
struct DecoderShape : TransformerShape {
  int layer = 0;
};

std::vector<std::string> faults_of_decoder_cut(const DecoderShape& shape, int parts) {
  return plan::faults_of_transformer_cut(shape, parts);
}

/// Attention and a feed-forward of the given kinds, each with a pre-norm and a residual connection.
template <class AttentionKind, class Kind>
class DecoderLayer final : public exec::Layer, public GeneratingLayer {
 public:
  DecoderLayer(const DecoderShape& shape, const exec::TensorParallelPlace& place,
               exec::Tokens tokens)
      : norm1_(norm("norm1", shape, place, tokens)),
        attention_(
            register_module("attention", AttentionKind(shape.config, shape.layer, place, tokens))),
        norm2_(norm("norm2", shape, place, tokens)),
        feed_forward_(register_module("feed_forward", Kind(shape.config, place, tokens))),
        turns_otherwise_beyond_(
            turns_otherwise_beyond(shape.config.rotary, shape.config.has_window(shape.layer))) {
    if (!shape.config.post_norms)
      return;
    post_norm1_ = norm("post_norm1", shape, place, tokens);
    post_norm2_ = norm("post_norm2", shape, place, tokens);
  }

  exec::Tensors forward_all(const exec::Tensors& inputs,
                            const exec::CallContext& context) override {
    const at::Tensor documents = inputs.size() > 1 ? inputs[1] : at::Tensor();
    return followed_by_documents(through(inputs.at(0),
                                         [&](const at::Tensor& normed) {
                                           return attention_->forward(normed, documents,
                                                                      context.selective_recompute);
                                         }),
                                 inputs);
  }
  at::Tensor forward(const at::Tensor& input, const exec::CallContext& context) override {
    return forward_all({input}, context).front();
  }
  at::Tensor decode_step(const at::Tensor& next, KvCache& memory) override {
    return through(
        next, [&](const at::Tensor& normed) { return attention_->decode_step(normed, memory); });
  }
  void check_length(std::int64_t prompt, std::int64_t all) const override {
    if (prompt <= turns_otherwise_beyond_ && all > turns_otherwise_beyond_)
      throw plan::InputError(
          fmt::format("model.rotary_scaling \"long\": a sequence with a prompt of {} tokens would "
                      "grow to {}, but beyond {} all its positions use other rotary angles, so its "
                      "KV cache becomes invalid: use a longer prompt, or generate fewer tokens",
                      prompt, all, turns_otherwise_beyond_));
  }
  std::vector<exec::CutParameter> cut_parameters() const override {
    auto all = attention_->cut_parameters("attention");
    add_cuts(all, feed_forward_->cut_parameters("feed_forward"));
    return all;
  }

  std::vector<exec::ParameterAlias> aliases() override {
    if constexpr (std::is_same_v<Kind, Mixture>)
      return feed_forward_->aliases("feed_forward");
    return {};
  }

 private:
  template <class Attend>
  at::Tensor through(const at::Tensor& input, const Attend& attend) {
    const at::Tensor attended = input + behind(post_norm1_, attend(norm1_->forward(input)));
    return attended + behind(post_norm2_, feed_forward_->forward(norm2_->forward(attended)));
  }
  GroupNorm norm(const char* name, const DecoderShape& shape,
                 const exec::TensorParallelPlace& place, exec::Tokens tokens) {
    return register_module(name,
                           GroupNorm(norm_of(shape.config, shape.config.hidden), place, tokens));
  }
  static at::Tensor behind(const GroupNorm& norm, const at::Tensor& value) {
    return norm.is_empty() ? value : norm->forward(value);
  }

  GroupNorm norm1_;
  AttentionKind attention_;
  GroupNorm norm2_;
  Kind feed_forward_;
  std::int64_t turns_otherwise_beyond_;
  GroupNorm post_norm1_{nullptr}, post_norm2_{nullptr};
};

class Head final : public LmHead {
 public:
  Head(const TransformerShape& shape, const exec::TensorParallelPlace& place, exec::Tokens tokens)
      : LmHead({.norm = norm_of(shape.config, shape.config.hidden),
                .words = shape.config.vocabulary,
                .has_bias = false,
                .cap = shape.config.logit_cap},
               place, tokens) {}
};

/// Returns a layer kind that contains all sizes except the number of layers and which layer it is.
std::string decoder_kind(const std::string& word, const TransformerShape& shape) {
  plan::Json sizes = plan::to_json(plan::ModelShape(shape));
  for (const char* const of_all : {"name", "layers", "sparse", "window_from", "windowed"})
    sizes.erase(of_all);
  return fmt::format("transformer {}: {}", word, sizes.dump());
}

template <class Kind>
exec::LayerSpec end_of_decoder(const std::string& name, const TransformerShape& shape,
                               exec::Tokens tokens) {
  return layer_with_shards<Kind>(name, decoder_kind(name, shape), shape, tokens,
                                 plan::faults_of_transformer_cut);
}

template <class AttentionKind, class Kind>
exec::LayerSpec layer_of_kinds(const DecoderShape& shape, exec::Tokens tokens) {
  const std::string word =
      std::string(shape.config.has_experts(shape.layer) ? "mixture" : "layer") +
      (shape.config.has_window(shape.layer) ? " with a window" : "");
  return layer_with_shards<DecoderLayer<AttentionKind, Kind>>(fmt::format("layer{}", shape.layer),
                                                              decoder_kind(word, shape), shape,
                                                              tokens, faults_of_decoder_cut);
}

exec::LayerSpec decoder_layer(const DecoderShape& shape, exec::Tokens tokens) {
  const bool is_latent = shape.config.is_latent();
  if (!shape.config.has_experts(shape.layer))
    return is_latent ? layer_of_kinds<LatentAttention, FeedForward>(shape, tokens)
                     : layer_of_kinds<Attention, FeedForward>(shape, tokens);
  exec::LayerSpec layer = is_latent ? layer_of_kinds<LatentAttention, Mixture>(shape, tokens)
                                    : layer_of_kinds<Attention, Mixture>(shape, tokens);
  layer.varies = layer.has_experts = true;
  return layer;
}

void tie(exec::LayerSpec& layer, const char* weight) {
  layer.tied_key = "embedding";
  layer.tied_weights = {weight};
}

}  // namespace

std::vector<exec::LayerSpec> transformer_layers(const TransformerShape& shape,
                                                exec::Tokens tokens) {
  const auto fields = plan::only_predicted(shape);
  if (!fields.empty())
    throw plan::InputError(fmt::format(
        "a transformer with these values of {} cannot be trained, only planned and predicted",
        fmt::join(fields, ", ")));
  std::vector<exec::LayerSpec> layers{end_of_decoder<TokenTable>("embedding", shape, tokens)};
  for (int i = 0; i < shape.config.layers; ++i)
    layers.push_back(decoder_layer({shape, i}, tokens));
  layers.push_back(end_of_decoder<Head>("head", shape, tokens));
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
              const exec::BatchShape& batch) {
             return exec::open_tokens(file, shape.sequence, shape.config.vocabulary, batch);
           }});
  return transformer;
}

}  // namespace pipewright::engine
