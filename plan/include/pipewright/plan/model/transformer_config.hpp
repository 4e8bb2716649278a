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
  bool head_norms = false;  // queries and keys are normed head by head
  bool query_bias = false;  // keys and values have one as well
  bool projection_bias = false;
  bool feed_forward_bias = false;
  bool dropout = false;  // hidden states are dropped, and the masks kept for the backward
  int window = 0;        // tokens that one sees; 0: all before it
  int window_from = 0;   // the first layer that has the window

  int experts = 0;  // that a layer of the mixture has
  int experts_per_token = 0;
  int expert_feed_forward = 0;
  int shared_feed_forward = 0;  // the width of all shared experts together
  bool router_bias = false;
  std::vector<bool> sparse{};  // by layer, whether it has experts; empty: none

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
