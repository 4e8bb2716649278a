#include "pipewright/plan/model/known_transformers.hpp"

#include <algorithm>
#include <cmath>

#include "pipewright/plan/bare_name.hpp"

namespace pipewright::plan {
namespace {

constexpr int usual_channels = 128;  // per head

TransformerConfig gpt(const char* name, int layers, int hidden, int heads, int vocabulary) {
  TransformerConfig config;
  config.name = name;
  config.layers = layers;
  config.hidden = hidden;
  config.heads = config.kv_heads = heads;
  config.head_channels = config.value_channels = usual_channels;
  config.feed_forward = 4 * hidden;
  config.vocabulary = vocabulary;
  return config;
}

TransformerConfig llama(const char* name, int layers, int hidden, int heads, int kv_heads,
                        int feed_forward, int vocabulary) {
  TransformerConfig config = gpt(name, layers, hidden, heads, vocabulary);
  config.kv_heads = kv_heads;
  config.feed_forward = feed_forward;
  config.gated = true;
  return config;
}

struct Mixture {
  int experts = 0;
  int per_token = 0;
  int width = 0;
  int shared = 0;
  int dense_layers = 0;
};

TransformerConfig with(TransformerConfig config, const Mixture& mixture) {
  config.experts = mixture.experts;
  config.experts_per_token = mixture.per_token;
  config.expert_feed_forward = mixture.width;
  config.shared_feed_forward = mixture.shared * mixture.width;
  config.set_mixture_behind(mixture.dense_layers);
  return config;
}

TransformerConfig with(TransformerConfig config, double rotary_base, int longest) {
  config.rotary.base = rotary_base;
  config.longest = longest;
  return config;
}

/// Llama 3.1 scales its rotary frequencies for sequences longer than Llama 3's.
TransformerConfig llama31(TransformerConfig config) {
  config = with(std::move(config), 500'000, 131'072);
  config.rotary.scaling = RotaryScaling::Llama3;
  config.rotary.factor = 8;
  config.rotary.longest = 8192;
  return config;
}

TransformerConfig with_window(TransformerConfig config, int window) {
  config.window = window;
  return config;
}

/// `mscale` is YaRN's mscale_all_dim, which scales the attention scores.
TransformerConfig deepseek(const char* name, int layers, int hidden, int feed_forward,
                           int vocabulary, const Mixture& mixture, double mscale) {
  TransformerConfig config =
      with(llama(name, layers, hidden, 128, 128, feed_forward, vocabulary), mixture);
  config.q_rank = 1536;
  config.kv_rank = 512;
  config.rope_channels = 64;
  config.latent_norms = true;
  config.longest = 163'840;
  config.norm_epsilon = 1e-6;
  config.rotary.neighbors = true;
  config.rotary.scaling = RotaryScaling::Yarn;
  config.rotary.factor = 40;
  config.rotary.longest = 4096;
  const double once = 0.1 * mscale * std::log(config.rotary.factor) + 1;
  config.score_scale = once * once / std::sqrt(1.0 * config.head_channels + config.rope_channels);
  config.router_groups = 8;
  return config;
}

TransformerConfig deepseek_v2() {
  TransformerConfig config =
      deepseek("deepseekv2", 60, 5120, 12288, 102400, {160, 6, 1536, 2, 1}, 0.707);
  config.groups_per_token = 3;
  config.weights_sum_to_one = false;
  config.routed_scale = 16;
  return config;
}

TransformerConfig deepseek_v3() {
  TransformerConfig config =
      deepseek("deepseekv3", 61, 7168, 18432, 129280, {256, 8, 2048, 1, 3}, 1);
  config.groups_per_token = 4;
  config.router_scores = RouterScores::Sigmoid;
  config.router_bias = true;
  config.routed_scale = 2.5;
  return config;
}

/// Sizes and rotary embeddings from the config.json of each model on Hugging Face; GPT-3's from
/// Brown et al., arXiv 2005.14165.
const std::vector<TransformerConfig>& models() {
  static const std::vector<TransformerConfig> models{
      with(llama("llama2-7b", 32, 4096, 32, 32, 11008, 32000), 10'000, 4096),
      with(llama("llama2-13b", 40, 5120, 40, 40, 13824, 32000), 10'000, 4096),
      with(llama("llama2-70b", 80, 8192, 64, 8, 28672, 32000), 10'000, 4096),
      with(llama("llama3-8b", 32, 4096, 32, 8, 14336, 128256), 500'000, 8192),
      with(llama("llama3-70b", 80, 8192, 64, 8, 28672, 128256), 500'000, 8192),
      llama31(llama("llama3-405b", 126, 16384, 128, 8, 53248, 128256)),
      with_window(with(llama("mistral-7b", 32, 4096, 32, 8, 14336, 32000), 10'000, 32768), 4096),
      gpt("gpt3-175b", 96, 12288, 96, 51200),
      with(with(llama("mixtral-8x7b", 32, 4096, 32, 8, 14336, 32000), {8, 2, 14336}), 1e6, 32768),
      with(with(llama("mixtral-8x22b", 56, 6144, 48, 8, 16384, 32000), {8, 2, 16384}), 1e6, 65536),
      deepseek_v2(),
      deepseek_v3()};
  return models;
}

}  // namespace

std::optional<TransformerConfig> find_transformer(const std::string& name) {
  const std::string wanted = bare_name(name);
  for (const TransformerConfig& model : models())
    if (bare_name(model.name) == wanted)
      return model;
  return {};
}

std::vector<std::string> known_transformers() {
  std::vector<std::string> names;
  for (const TransformerConfig& model : models())
    names.push_back(model.name);
  return names;
}

}  // namespace pipewright::plan
