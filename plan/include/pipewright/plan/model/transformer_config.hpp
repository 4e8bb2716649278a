#pragma once

// A transformer in sizes: all that its parameters, products and activations follow from. It is read
// from a Hugging Face config.json or from Megatron's arguments; what becomes of it lies in
// transformer_layers.hpp.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace pipewright::plan {

/// What a norm learns: a weight (RMS), or a weight and a bias.
enum class NormKind { Root, Layer };

/// What the feed-forward bends its gates with, or where it has none what it multiplies. Usual: SiLU
/// of gates, and else the exact GELU. Tanh is GELU's approximation by it.
enum class Activation { Usual, Silu, Gelu, Tanh };

/// How the speeds of rotary positions are slowed for sequences longer than those they were made
/// for: all by a factor; the slow ones alone (Llama 3); from fast to slow by a ramp (YaRN, arXiv
/// 2309.00071); each by a factor of its own (LongRoPE, arXiv 2402.13753).
enum class RotaryScaling { None, Linear, Llama3, Yarn, Long };

/// Positions by which pairs of a head's channels are turned (RoPE, arXiv 2104.09864).
struct Rotary {
  double base = 10'000;
  double window_base = 0;   // of layers with a window, whose speeds are not scaled; 0: as all
  double share = 1;         // of a head's channels, the first ones
  bool neighbours = false;  // pairs are neighbours, not the halves of a head
  RotaryScaling scaling = RotaryScaling::None;
  double factor = 1;
  int longest = 0;               // sequence that the speeds were made for
  double low = 1, high = 4;      // of Llama 3: waves in `longest` that are slowed, or not
  double fast = 32, slow = 1;    // of YaRN: turns in `longest` where its ramp begins and ends
  double magnitude = 1;          // times what is turned
  std::vector<double> shorts{};  // of LongRoPE, by pair: for sequences up to `longest`
  std::vector<double> longs{};   // for those beyond it
  friend bool operator==(const Rotary&, const Rotary&) = default;
};

/// What makes a router's logits weights.
enum class RouterScores { Softmax, Sigmoid };

struct TransformerConfig {
  std::string name{};  // as its file calls it
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_channels = 0;   // a head's queries and keys; in latent attention without rope's
  int value_channels = 0;  // a head's values
  int feed_forward = 0;    // the width of dense layers
  int vocabulary = 0;
  int vocabulary_multiple = 1;  // times the tensor size: what the vocabulary is padded to
  int longest = 0;              // sequence that it is made for
  bool learned_positions = false;
  bool gated = false;  // three matrices in the feed-forward, not two
  bool tied = false;   // the head's weight is the embedding's
  NormKind norm = NormKind::Root;
  double norm_epsilon = 1e-5;
  bool norm_plus_one = false;  // a norm's weight is what it multiplies by, less 1
  bool post_norms = false;     // what attention and feed-forward give is normed as well
  bool head_norms = false;     // queries and keys are normed head by head
  bool query_bias = false;     // keys and values have one as well
  bool projection_bias = false;
  bool feed_forward_bias = false;
  Activation activation = Activation::Usual;
  double embedding_scale = 1;  // times the embedding's rows
  int padding_token = -1;      // whose row the embedding does not learn; -1: none
  double score_scale = 0;      // times queries with keys; 0: 1 / sqrt(channels of a key)
  double score_cap = 0;        // what scores approach as they grow; 0: none
  double logit_cap = 0;        // likewise the head's logits
  Rotary rotary{};
  bool dropout = false;          // hidden states are dropped, and the masks kept for the backward
  int window = 0;                // tokens that one sees; 0: all before it
  int window_from = 0;           // the first layer that has the window
  std::vector<bool> windowed{};  // by layer, whether it has it; empty: as `window_from` says

  int experts = 0;  // that a layer of the mixture has
  int experts_per_token = 0;
  int expert_feed_forward = 0;
  int shared_feed_forward = 0;  // the width of all shared experts together
  bool router_bias = false;     // with sigmoid scores it chooses experts, and does not weigh them
  RouterScores router_scores = RouterScores::Softmax;
  bool weights_sum_to_one = true;  // those of the experts of a token
  double routed_scale = 1;         // times these weights
  int router_groups = 1;           // of experts
  int groups_per_token = 1;        // whose experts a token may meet
  std::vector<bool> sparse{};      // by layer, whether it has experts; empty: none

  // Latent attention (DeepSeek-V2, arXiv 2405.04434); 0: queries, or all, without a rank.
  int q_rank = 0;
  int kv_rank = 0;
  int rope_channels = 0;
  bool latent_norms = false;

  int predictions = 0;  // modules behind the last layer that predict tokens further on (MTP)

  bool is_latent() const { return kv_rank > 0; }
  bool has_experts(int layer) const;
  bool has_mixture() const;
  /// Layers in front of the mixture's first; 0 where no layer has experts.
  int leading_dense_layers() const;
  /// All layers but so many in front get experts.
  void set_mixture_behind(int dense_layers);
  bool has_window(int layer) const;
  /// Tokens of a sequence that one token is multiplied with.
  int seen(int layer, int sequence) const;
  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

/// What is wrong with a config, and which member to blame, so that a reader can say in which field.
struct ConfigFault {
  const int* member;
  std::string message;
};
std::vector<ConfigFault> faults_of(const TransformerConfig& config);

/// "2 or 4" for 3: the sizes nearest to `wanted`, from 1 to `most`, that are `possible`.
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
