#pragma once

// Sizes of a transformer, from which its parameters, matrix products and activations follow. They
// are read from a Hugging Face config.json or from Megatron-LM's arguments; transformer_layers.hpp
// derives the layers from them.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace pipewright::plan {

/// Root: RMSNorm, which learns a weight. Layer: LayerNorm, which learns a weight and a bias.
enum class NormKind { Root, Layer };

/// Activation function of the feed-forward network. Usual: SiLU if it is gated, else the exact
/// GELU. Tanh: the tanh approximation of GELU.
enum class Activation { Usual, Silu, Gelu, Tanh };

/// Scaling of RoPE frequencies for sequences longer than those in pretraining. Linear: all by one
/// factor. Llama3: only the low frequencies. Yarn: by a ramp from high to low frequencies (arXiv
/// 2309.00071). Long: each by its own factor (LongRoPE, arXiv 2402.13753).
enum class RotaryScaling { None, Linear, Llama3, Yarn, Long };

/// Rotary position embeddings (RoPE, arXiv 2104.09864).
struct Rotary {
  double base = 10'000;
  /// Base of layers with a window, whose frequencies are not scaled; 0: as all layers.
  double window_base = 0;
  double share = 1;        // rotated fraction of a head's channels, the first ones
  bool neighbors = false;  // pairs are adjacent channels instead of the two halves of a head
  RotaryScaling scaling = RotaryScaling::None;
  double factor = 1;
  int longest = 0;  // sequence length before scaling
  /// Llama 3: frequencies with fewer than `low` periods in `longest` are scaled, those with more
  /// than `high` are not.
  double low = 1, high = 4;
  double fast = 32, slow = 1;    // YaRN: rotations in `longest` at which its ramp begins and ends
  double magnitude = 1;          // factor of the rotated values
  std::vector<double> shorts{};  // LongRoPE factors per pair, for sequences up to `longest`
  std::vector<double> longs{};   // the same, for longer sequences
  friend bool operator==(const Rotary&, const Rotary&) = default;
};

/// Function that turns a router's logits into weights.
enum class RouterScores { Softmax, Sigmoid };

/// All sizes and variants of a transformer.
struct TransformerConfig {
  std::string name{};  // name in its file
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  /// Channels of a query or key; in latent attention, without the RoPE channels.
  int head_channels = 0;
  int value_channels = 0;  // channels of a value
  int feed_forward = 0;    // width of dense layers
  int vocabulary = 0;
  /// The vocabulary is padded to a multiple of this times the tensor-parallel size.
  int vocabulary_multiple = 1;
  int longest = 0;  // longest supported sequence
  bool learned_positions = false;
  bool gated = false;  // three matrices in the feed-forward network instead of two
  bool tied = false;   // the head shares the embedding's weight
  NormKind norm = NormKind::Root;
  double norm_epsilon = 1e-5;
  bool norm_plus_one = false;  // the norm multiplies by its weight plus one
  bool post_norms = false;     // outputs of attention and feed-forward are normalized as well
  bool head_norms = false;     // queries and keys are normalized per head
  bool query_bias = false;     // keys and values have a bias as well
  bool projection_bias = false;
  bool feed_forward_bias = false;
  Activation activation = Activation::Usual;
  double embedding_scale = 1;  // factor of the embedding's rows
  int padding_token = -1;      // token whose embedding row is not trained; -1: none
  double score_scale = 0;      // factor of the attention scores; 0: 1 / sqrt(channels of a key)
  double score_cap = 0;        // soft cap of the attention scores; 0: none
  double logit_cap = 0;        // soft cap of the head's logits; 0: none
  Rotary rotary{};
  bool dropout = false;  // dropout on hidden states, whose masks are saved for the backward
  int window = 0;        // attention window in tokens; 0: all earlier tokens
  int window_from = 0;   // first layer with the window
  /// By layer, true if it has the window; empty: as `window_from` says.
  std::vector<bool> windowed{};

  int experts = 0;  // experts per layer
  int experts_per_token = 0;
  int expert_feed_forward = 0;
  int shared_feed_forward = 0;  // total width of the shared experts
  /// With sigmoid scores, affects the choice of experts but not their weights.
  bool router_bias = false;
  RouterScores router_scores = RouterScores::Softmax;
  bool weights_sum_to_one = true;  // normalize the weights of a token's experts
  double routed_scale = 1;         // factor of these weights
  int router_groups = 1;           // groups of experts
  int groups_per_token = 1;        // groups from which a token's experts are chosen
  std::vector<bool> sparse{};      // by layer, true if it has experts; empty: none

  // Ranks of latent attention (DeepSeek-V2, arXiv 2405.04434). A q_rank of 0: uncompressed queries;
  // a kv_rank of 0: no latent attention.
  int q_rank = 0;
  int kv_rank = 0;
  int rope_channels = 0;
  bool latent_norms = false;

  int predictions = 0;  // multi-token prediction (MTP) modules after the last layer

  bool is_latent() const { return kv_rank > 0; }
  bool has_experts(int layer) const;
  bool has_mixture() const;
  /// Returns the number of layers before the first one with experts; 0 if no layer has experts.
  int leading_dense_layers() const;
  /// Gives experts to all layers except the first `dense_layers`.
  void set_mixture_behind(int dense_layers);
  bool has_window(int layer) const;
  /// Returns how many tokens of a sequence one token's scores are computed with: all, or as many as
  /// its window has.
  int seen(int layer, int sequence) const;
  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

/// An error in a config, and the responsible member, so that a reader can name the field.
struct ConfigFault {
  const int* member;
  std::string message;
};
std::vector<ConfigFault> faults_of(const TransformerConfig& config);

/// Returns the nearest sizes to `wanted` that are `possible`, from 1 to `most`: "2 or 4" for 3.
template <class Possible>
std::string nearest_sizes(int wanted, int most, const Possible& possible) {
  const auto next = [&](int from, int step) {
    while (from >= 1 && from <= most && !possible(from))
      from += step;
    return from >= 1 && from <= most ? std::to_string(from) : std::string();
  };
  const std::string below = next(std::min(wanted - 1, most), -1), above = next(wanted + 1, 1);
  return below + (below.empty() || above.empty() ? "" : " or ") + above;
}

}  // namespace pipewright::plan
