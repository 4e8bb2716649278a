#include "pipewright/plan/model/executor_layers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright::plan {
namespace {

constexpr double single_bytes = 4;  // for values that are always in float32
constexpr double index_bytes = 8;
constexpr bool with_scores = true;  // selective recomputation drops them together with the scores

class ExecutorCounting {
 public:
  ExecutorCounting(const TransformerTraining& training, const Cut& cut, double value_bytes)
      : c_(training.model),
        sequence_(training.sequence),
        t_(cut.tensor),
        value_(value_bytes),
        tokens_(1.0 * cut.microbatch * training.sequence / cut.context),
        // tokens in norms; matrix products have all tokens
        own_tokens_(tokens_ / (cut.sequence_parallel ? t_ : 1)) {}

  ExecutorLayer embedding() {
    ExecutorLayer layer =
        made("embedding", index_bytes * tokens_, value_ * c_.hidden * own_tokens_);
    // Indices of words within this rank's part of the vocabulary; they replace the input.
    if (t_ > 1)
      add(layer, "which words others have", tokens_);
    if (c_.embedding_scale != 1)
      add(layer, "the factor of rows", value_);
    if (c_.learned_positions)
      add(layer, "positions", index_bytes * sequence_);
    return layer;
  }

  ExecutorLayer block(int index) {
    const double hidden = value_ * c_.hidden * own_tokens_;
    ExecutorLayer layer = made(fmt::format("layer{}", index), hidden, hidden);
    add_norm_numbers(layer);
    add(layer, "normed input", value_ * c_.hidden * tokens_);
    if (c_.is_latent())
      add_latent(layer);
    else
      add_heads(layer);
    if (c_.post_norms)
      add(layer, "what attention gives", hidden);
    add(layer, "input and attention", hidden);
    add_norm_numbers(layer);
    add(layer, "normed input and attention", value_ * c_.hidden * tokens_);
    if (c_.has_experts(index))
      add_mixture(layer);
    else
      add_feed_forward(layer, "feed-forward", c_.feed_forward * tokens_);
    if (c_.post_norms)
      add(layer, "what the feed-forward gives", hidden);
    return layer;
  }

  ExecutorLayer head() {
    const double logits = value_ * c_.vocabulary / t_ * tokens_;
    ExecutorLayer layer = made("head", value_ * c_.hidden * own_tokens_, logits);
    add_norm_numbers(layer);
    add(layer, "normed input", value_ * c_.hidden * tokens_);
    if (c_.logit_cap > 0)
      add(layer, "bent logits", logits);
    return layer;
  }

 private:
  static ExecutorLayer made(std::string name, double input, double output) {
    return {.name = std::move(name),
            .input = whole_bytes(input),
            .kept = {},
            .output = whole_bytes(output)};
  }

  static void add(ExecutorLayer& layer, const char* what, double bytes, bool again = false) {
    if (bytes > 0)
      layer.kept.push_back({what, whole_bytes(bytes), again});
  }

  /// RMSNorm recomputes its statistic and saves nothing.
  void add_norm_numbers(ExecutorLayer& layer) const {
    if (c_.norm == NormKind::Layer)
      add(layer, "mean and deviation", 2 * value_ * own_tokens_);
  }

  void add_heads(ExecutorLayer& layer) const {
    const double channels = c_.head_channels * tokens_ / t_;
    if (c_.head_norms) {
      add(layer, "queries before their norm", value_ * c_.heads * channels);
      add(layer, "keys before their norm", value_ * c_.kv_heads * channels);
    }
    add(layer, "queries", value_ * c_.heads * channels);
    add(layer, "keys", value_ * c_.kv_heads * channels);
    add(layer, "values", value_ * c_.kv_heads * c_.value_channels * tokens_ / t_);
    add_core(layer, c_.head_channels);
  }

  /// Adds latent attention. Each head has its own keys, made from the latent and from the rotary
  /// channels that all heads share.
  void add_latent(ExecutorLayer& layer) const {
    const double normed = c_.latent_norms ? 1 : 0;
    const double numbers = c_.norm == NormKind::Layer ? 2 * normed : 0;
    if (c_.q_rank > 0) {
      add(layer, "latent queries before their norm", normed * value_ * c_.q_rank * own_tokens_);
      add(layer, "mean and deviation", numbers * value_ * own_tokens_);
      add(layer, "latent queries", value_ * c_.q_rank * tokens_);
    }
    add(layer, "latent before its norm", normed * value_ * c_.kv_rank * own_tokens_);
    add(layer, "mean and deviation", numbers * value_ * own_tokens_);
    add(layer, "latent", value_ * c_.kv_rank * tokens_);
    const double width = 1.0 * c_.head_channels + c_.rope_channels;
    const double heads = c_.heads * tokens_ / t_;
    add(layer, "queries", value_ * width * heads);
    add(layer, "keys", value_ * width * heads);
    add(layer, "values", value_ * c_.value_channels * heads);
    add_core(layer, width);
  }

  /// Adds what attention saves for queries and keys with `width` channels.
  void add_core(ExecutorLayer& layer, double width) const {
    const double heads = c_.heads * tokens_ / t_;
    add(layer, "mixed values", value_ * c_.value_channels * heads);
    if (c_.score_cap > 0)
      add_scores(layer);
    else
      add(layer, "sums of exponentials", single_bytes * heads, with_scores);
    // Values narrower than keys are padded to the width of keys.
    const double values =
        c_.score_cap > 0 ? c_.value_channels : std::max<double>(width, c_.value_channels);
    layer.attention_flops = 2 * heads * sequence_ * (width + values);
  }

  /// Adds the attention scores, which are stored if they are capped. Keys and values are then
  /// repeated for each query head.
  void add_scores(ExecutorLayer& layer) const {
    const double more = (1.0 * c_.heads - c_.kv_heads) * tokens_ / t_;
    const double scores = 1.0 * c_.heads * tokens_ / t_ * sequence_;
    add(layer, "keys of further queries", value_ * c_.head_channels * more, with_scores);
    add(layer, "values of further queries", value_ * c_.value_channels * more, with_scores);
    add(layer, "bent scores", value_ * scores, with_scores);
    add(layer, "the mask", 1.0 * sequence_ * sequence_, with_scores);
    add(layer, "weights", single_bytes * scores, with_scores);
    if (value_ < single_bytes)
      add(layer, "weights as values are", value_ * scores, with_scores);
  }

  /// Adds a feed-forward part whose hidden width is `wide`, summed over all tokens.
  void add_feed_forward(ExecutorLayer& layer, const char* what, double wide) const {
    add(layer, what,
        (c_.gated ? 3 : 2) * value_ * wide / t_);  // up, gate, and their product or activation
  }

  void add_mixture(ExecutorLayer& layer) const {
    const double choices = c_.experts_per_token * tokens_;
    add_router(layer, choices);
    // The permutation and its inverse.
    add(layer, "places among experts", 2 * index_bytes * choices);
    add(layer, "rows by expert", value_ * c_.hidden * choices);
    add_feed_forward(layer, "experts", c_.expert_feed_forward * choices);
    add(layer, "rows by token", value_ * c_.hidden * choices);
    if (c_.feed_forward_bias)
      add(layer, "weights of all experts", value_ * c_.experts * own_tokens_);
    add_feed_forward(layer, "shared experts", c_.shared_feed_forward * tokens_);
  }

  void add_router(ExecutorLayer& layer, double choices) const {
    add(layer, "chosen experts", index_bytes * choices);
    const bool scores_of_chosen =
        c_.router_scores == RouterScores::Softmax && c_.weights_sum_to_one && c_.router_groups == 1;
    if (scores_of_chosen) {
      add(layer, "scores of the chosen", single_bytes * choices);
      if (value_ < single_bytes || c_.routed_scale != 1)
        add(layer, "weights of the chosen", value_ * choices);
      return;
    }
    add(layer, "scores of all experts", single_bytes * c_.experts * own_tokens_);
    if (c_.weights_sum_to_one) {
      add(layer, "scores of the chosen", single_bytes * choices);
      add(layer, "their sums", single_bytes * own_tokens_);
    }
    add(layer, "weights of the chosen", value_ * choices);
  }

  const TransformerConfig& c_;
  const double sequence_, t_, value_, tokens_, own_tokens_;
};

Bytes sum_of(const std::vector<SavedTensor>& kept, bool dropped_alone) {
  Bytes sum;
  for (const SavedTensor& tensor : kept)
    if (tensor.again || !dropped_alone)
      sum += tensor.bytes;
  return sum;
}

}  // namespace

Bytes ExecutorLayer::activation() const { return sum_of(kept, /*dropped_alone=*/false); }

Bytes ExecutorLayer::selective_activation() const { return sum_of(kept, /*dropped_alone=*/true); }

std::vector<ExecutorLayer> executor_layers(const TransformerTraining& training, const Cut& cut,
                                           int value_bytes) {
  ExecutorCounting counting(training, cut, value_bytes);
  std::vector<ExecutorLayer> layers{counting.embedding()};
  for (int index = 0; index < training.model.layers; ++index)
    layers.push_back(counting.block(index));
  layers.push_back(counting.head());
  return layers;
}

Bytes kept_by_loss(const TransformerTraining& training, const Cut& cut, int value_bytes) {
  const double tokens = 1.0 * cut.microbatch * training.sequence / cut.context;
  const double words = 1.0 * training.model.vocabulary / cut.tensor;
  if (cut.tensor == 1)  // log-probabilities, and the number of tokens that count
    return whole_bytes(single_bytes * (tokens * words + 1));
  // Exponentials; for each token their sum, the target's logit and the token's weight.
  return whole_bytes(value_bytes * tokens * (words + 3));
}

}  // namespace pipewright::plan
