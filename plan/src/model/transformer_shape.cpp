#include "pipewright/plan/model/transformer_shape.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/model/declare_model.hpp"
#include "pipewright/plan/model/size_ranges.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"

namespace pipewright::plan {

const std::vector<std::string>& attention_kinds() {
  static const std::vector<std::string> names{"scores", "fused"};
  return names;
}

namespace {

const std::vector<std::string>& norm_kinds() {
  static const std::vector<std::string> names{"root", "layer"};
  return names;
}

const std::vector<std::string>& product_precisions() {
  static const std::vector<std::string> names{"half", "float8", "float4", "single"};
  return names;
}

const std::vector<std::string>& activations() {
  static const std::vector<std::string> names{"usual", "silu", "gelu", "tanh"};
  return names;
}

const std::vector<std::string>& rotary_scalings() {
  static const std::vector<std::string> names{"none", "linear", "llama3", "yarn", "long"};
  return names;
}

const std::vector<std::string>& router_scores() {
  static const std::vector<std::string> names{"softmax", "sigmoid"};
  return names;
}

constexpr Range share_range{.least = 0, .most = 1, .excludes_least = true};
constexpr Range width_range{.least = 1, .most = most_channels};
constexpr Range width_or_none{.least = 0, .most = most_channels};
constexpr Range tokens_range{.least = 1, .most = most_tokens};
constexpr Range tokens_or_none{.least = 0, .most = most_tokens};
constexpr Range layers_range{.least = 1, .most = most_layers};
constexpr Range layers_or_none{.least = 0, .most = most_layers};

}  // namespace

template <MaybeConst<TransformerConfig> Struct, class Visit>
void visit_sizes(Struct& s, Visit&& visit) {
  visit("name", s.name, any(), "Name of the model.");
  visit("layers", s.layers, needed(within(layers_range)),
        "Number of layers between embedding and head.");
  visit("hidden", s.hidden, needed(within(width_range)), "Hidden width.");
  visit("heads", s.heads, needed(within(width_range)), "Heads of the attention.");
  visit("kv_heads", s.kv_heads, needed(within(width_range)), "Number of key and value heads.");
  visit("head_channels", s.head_channels, needed(within(width_range)),
        "Channels of a head's keys.");
  visit("value_channels", s.value_channels, needed(within(width_range)),
        "Channels of a head's values.");
  visit("feed_forward", s.feed_forward, needed(within(width_or_none)),
        "Width of the feed-forward in dense layers.");
  visit("vocabulary", s.vocabulary, needed(within(width_range)),
        "Number of tokens in the vocabulary.");
  visit("vocabulary_multiple", s.vocabulary_multiple, within(width_range),
        "The vocabulary is padded to a multiple of this times the tensor size.");
  visit("max_sequence", s.longest, within(tokens_or_none),
        "Longest sequence that the model supports.");
  visit("learned_positions", s.learned_positions, any(), "Positions have learned embeddings.");
  visit("gated", s.gated, any(), "The feed-forward has three matrices instead of two.");
  visit("tied", s.tied, any(), "The head's weight is the embedding's.");
  visit("norm", s.norm, one_of(norm_kinds()),
        "Parameters of a norm: a weight, or a weight and a bias.");
  visit("norm_epsilon", s.norm_epsilon, within(at_least(0)),
        "Epsilon that a norm adds to the variance.");
  visit("norm_plus_one", s.norm_plus_one, any(), "A norm multiplies by its weight plus 1.");
  visit("post_norms", s.post_norms, any(),
        "The outputs of attention and feed-forward are normed before they are added.");
  visit("head_norms", s.head_norms, any(), "Queries and keys are normed by head.");
  visit("query_bias", s.query_bias, any(), "Queries, keys and values have a bias.");
  visit("projection_bias", s.projection_bias, any(),
        "The projection after the attention has a bias.");
  visit("feed_forward_bias", s.feed_forward_bias, any(), "The feed-forward has biases.");
  visit("activation", s.activation, one_of(activations()),
        "Activation of the feed-forward; usual: SiLU if it is gated, otherwise the exact GELU.");
  visit("embedding_scale", s.embedding_scale, within(more_than(0)), "Factor of the embedding.");
  visit("padding_token", s.padding_token, within({.least = -1, .most = most_channels}),
        "Token whose row of the embedding is not trained by lookups; -1: none.");
  visit("score_scale", s.score_scale, within(at_least(0)),
        "Factor of the attention scores; 0: 1 / sqrt(channels of a key).");
  visit("score_cap", s.score_cap, within(at_least(0)),
        "Soft cap of the attention scores; 0: none.");
  visit("logit_cap", s.logit_cap, within(at_least(0)), "Soft cap of the logits; 0: none.");
  visit("rotary_base", s.rotary.base, within(more_than(0)), "Base of the rotary frequencies.");
  visit("rotary_window_base", s.rotary.window_base, within(at_least(0)),
        "Base of the rotary frequencies in sliding-window layers, which are not scaled; 0: as in "
        "other layers.");
  visit("rotary_fraction", s.rotary.share, within(share_range),
        "Share of a head's channels that RoPE rotates.");
  visit("rotary_interleaved", s.rotary.neighbors, any(),
        "RoPE rotates pairs of adjacent channels instead of the two halves.");
  visit("rotary_scaling", s.rotary.scaling, one_of(rotary_scalings()),
        "How rotary frequencies are scaled for long sequences.");
  visit("rotary_factor", s.rotary.factor, within(more_than(0)),
        "Factor by which rotary frequencies are reduced.");
  visit("rotary_original_length", s.rotary.longest, within(tokens_or_none),
        "Sequence length that the rotary frequencies were trained for.");
  visit("rotary_low", s.rotary.low, within(more_than(0)),
        "For llama3: a frequency with fewer periods in that sequence is reduced.");
  visit("rotary_high", s.rotary.high, within(more_than(0)),
        "For llama3: a frequency with more periods is kept.");
  visit("rotary_fast", s.rotary.fast, within(more_than(0)),
        "For yarn: a frequency with more rotations in that sequence is kept.");
  visit("rotary_slow", s.rotary.slow, within(more_than(0)),
        "For yarn: a frequency with fewer rotations is reduced.");
  visit("rotary_magnitude", s.rotary.magnitude, within(more_than(0)),
        "Factor of the rotated channels.");
  visit("rotary_short_factors", s.rotary.shorts, within(more_than(0)),
        "For long: a factor for each pair of channels, for sequences up to that length.");
  visit("rotary_long_factors", s.rotary.longs, within(more_than(0)),
        "For long: the same for longer sequences.");
  visit("dropout", s.dropout, any(), "Hidden states have dropout.");
  visit("window", s.window, within(tokens_or_none), "Sliding window in tokens; 0: none.");
  visit("window_from", s.window_from, within(layers_or_none),
        "First layer with the sliding window.");
  visit("windowed", s.windowed, any(),
        "True if each layer has the sliding window; empty: as window_from says.");
  visit("experts", s.experts, within(width_or_none), "Number of experts of a layer.");
  visit("experts_per_token", s.experts_per_token, within(width_or_none),
        "Number of experts per token.");
  visit("expert_feed_forward", s.expert_feed_forward, within(width_or_none), "Width of an expert.");
  visit("shared_feed_forward", s.shared_feed_forward, within(width_or_none),
        "Total width of the shared experts.");
  visit("router_bias", s.router_bias, any(),
        "The router has a bias. With sigmoid scores it affects the choice of experts, but not "
        "their weights.");
  visit("router_scores", s.router_scores, one_of(router_scores()),
        "Function that turns the router's logits into weights.");
  visit("weights_sum_to_one", s.weights_sum_to_one, any(),
        "The weights of a token's experts are normalized to a sum of 1.");
  visit("routed_scale", s.routed_scale, within(more_than(0)), "Factor of the experts' weights.");
  visit("router_groups", s.router_groups, within(width_range), "Number of expert groups.");
  visit("groups_per_token", s.groups_per_token, within(width_range),
        "Number of groups that a token may be routed to.");
  visit("sparse", s.sparse, any(), "True if each layer has experts; empty: none has.");
  visit("q_rank", s.q_rank, within(width_or_none), "Rank of latent attention's queries.");
  visit("kv_rank", s.kv_rank, within(width_or_none),
        "Rank of latent attention's keys and values; 0: no latent attention.");
  visit("rope_channels", s.rope_channels, within(width_or_none),
        "Channels of latent attention that RoPE rotates.");
  visit("latent_norms", s.latent_norms, any(), "The latent queries, keys and values are normed.");
  visit("mtp_modules", s.predictions, within(layers_or_none),
        "Number of multi-token-prediction modules, which are not supported in training.");
}

template <MaybeConst<TransformerShape> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit_sizes(s.config, visit);
  visit("sequence", s.sequence, needed(within(tokens_range)), "Tokens of a sample.");
  visit("attention", s.attention, one_of(attention_kinds()),
        "True if attention writes its scores to memory.");
  visit("product_precision", s.products, one_of(product_precisions()),
        "Bits of the operands of matrix products: 32, 16, 8 or 4.");
}

namespace {

Model layers_of_shape(const TransformerShape& shape) {
  return transformer_model(shape.config, shape.sequence);
}

Sample token_window(const TransformerShape& shape) {
  const SampleTensor window{.shape = {shape.sequence}, .is_index = true};
  return {.units = shape.sequence, .input = window, .target = window};
}

LayerEstimate nothing_more(const TransformerShape&, const Layer&) { return {}; }

/// Returns the key of the field that a fault refers to.
std::string key_of(const TransformerShape& shape, const int* member) {
  std::string found;
  visit_fields(shape, [&](const char* key, const auto& field, const auto&...) {
    if constexpr (std::is_same_v<decltype(field), const int&>)
      if (&field == member)
        found = key;
  });
  return found;
}

void check_transformer(const TransformerShape& shape, JsonObject& object) {
  const TransformerConfig& config = shape.config;
  const auto fits = [&](std::size_t flags) {
    return flags == 0 || flags == static_cast<std::size_t>(config.layers);
  };
  if (!fits(config.windowed.size()))
    object.error("windowed", fmt::format("{} flags are given for {} layers", config.windowed.size(),
                                         config.layers));
  if (!fits(config.sparse.size()))
    object.error("sparse", fmt::format("{} flags are given for {} layers", config.sparse.size(),
                                       config.layers));
  if (config.learned_positions && shape.sequence > config.longest)
    object.error("sequence", fmt::format("it is longer than the {} positions that are learned",
                                         config.longest));
  if (config.padding_token >= config.vocabulary)
    object.error("padding_token",
                 fmt::format("the vocabulary ends with token {}", config.vocabulary - 1));
  for (const ConfigFault& fault : faults_of(config))
    object.error(key_of(shape, fault.member), fault.message);
}

}  // namespace

TransformerTraining training_of(const TransformerShape& shape, int batch) {
  return {.model = shape.config,
          .sequence = shape.sequence,
          .batch = batch,
          .attention = shape.attention,
          .precision = shape.products};
}

TransformerShape shape_of(const TransformerTraining& training) {
  return {.config = training.model,
          .sequence = training.sequence,
          .attention = training.attention,
          .products = training.precision};
}

namespace {

int narrowest_feed_forward(const TransformerConfig& c) {
  int narrowest = most_channels;
  for (int layer = 0; layer < c.layers; ++layer) {
    narrowest = std::min(narrowest, c.has_experts(layer) ? c.expert_feed_forward : c.feed_forward);
    if (c.has_experts(layer) && c.shared_feed_forward > 0)
      narrowest = std::min(narrowest, c.shared_feed_forward);
  }
  return narrowest;
}

}  // namespace

std::vector<std::string> faults_of_transformer_cut(const TransformerShape& shape, int parts) {
  const TransformerConfig& c = shape.config;
  const int narrowest = narrowest_feed_forward(c);
  const auto possible = [&](int size) {
    return c.heads % size == 0 && c.kv_heads % size == 0 && narrowest >= size &&
           c.vocabulary >= size;
  };
  if (possible(parts))
    return {};
  return {fmt::format(
      "{} heads, {} of them of keys and values, a feed-forward of {} and a vocabulary of {} cannot "
      "be divided into {} parts: heads must divide evenly, and no other part be empty; {} would do",
      c.heads, c.kv_heads, narrowest, c.vocabulary, parts,
      nearest_sizes(parts, c.heads, possible))};
}

namespace {

int turning_channels(const TransformerConfig& c) {
  return c.is_latent() ? c.rope_channels : static_cast<int>(c.rotary.share * c.head_channels);
}

/// Returns true if the model has one factor for each pair of channels, or needs none.
bool has_factors(const TransformerConfig& c, const std::vector<double>& factors) {
  return c.rotary.scaling != RotaryScaling::Long || std::ssize(factors) == turning_channels(c) / 2;
}

}  // namespace

std::vector<std::string> only_predicted(const TransformerShape& shape) {
  const TransformerConfig& c = shape.config;
  std::vector<std::string> fields;
  const auto add_if = [&](bool unlike_training, const char* field) {
    if (unlike_training)
      fields.emplace_back(field);
  };
  const bool has_flags = std::find(c.sparse.begin(), c.sparse.end(), true) != c.sparse.end();
  add_if(has_flags && c.experts == 0, "experts");
  add_if(has_flags && c.experts_per_token == 0, "experts_per_token");
  add_if(has_flags && c.expert_feed_forward == 0, "expert_feed_forward");
  add_if(c.is_latent() && c.learned_positions, "learned_positions");
  add_if(c.is_latent() && c.head_norms, "head_norms");
  add_if(c.norm_plus_one && c.norm == NormKind::Layer, "norm_plus_one");
  add_if(c.dropout, "dropout");
  add_if(c.vocabulary % c.vocabulary_multiple != 0, "vocabulary_multiple");
  // RoPE rotates channels in pairs.
  add_if(!c.learned_positions && !c.is_latent() && turning_channels(c) % 2 != 0,
         c.rotary.share < 1 ? "rotary_fraction" : "head_channels");
  add_if(c.is_latent() && c.rope_channels % 2 != 0, "rope_channels");
  add_if(!has_factors(c, c.rotary.shorts), "rotary_short_factors");
  add_if(!has_factors(c, c.rotary.longs), "rotary_long_factors");
  add_if(shape.attention == AttentionKind::Scores, "attention");
  add_if(shape.products != ProductPrecision::Half, "product_precision");
  return fields;
}

template <>
const ModelDescriptor& descriptor_of<TransformerShape>() {
  static const ModelDescriptor transformer = declare_model<TransformerShape>(
      {.meaning = "A transformer by its sizes, as in plans of public models.",
       .data = tokens_data,
       .unit = "tokens",
       .layers = layers_of_shape,
       .sample = token_window,
       .estimate = nothing_more,
       .check = check_transformer,
       .faults_of_cut = faults_of_transformer_cut,
       .only_predicted = only_predicted});
  return transformer;
}

}  // namespace pipewright::plan
