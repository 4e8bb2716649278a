#include "trainers/megatron_variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/layer_pattern.hpp"

namespace pipewright::models {
namespace {

using plan::RotaryScaling;

// Constants that no argument sets: of Llama 3's scaling, and of YaRN in latent attention.
constexpr int llama3_longest = 8192;
constexpr int latent_longest = 4096;

/// Returns YaRN's attention factor (arXiv 2309.00071).
double yarn_factor(double scaling, double times) {
  return scaling <= 1 ? 1 : 0.1 * times * std::log(scaling) + 1;
}

double key_channels(const plan::TransformerConfig& config) {
  return 1.0 * config.head_channels + config.rope_channels;
}

void read_yarn(MegatronFields& fields, plan::TransformerConfig& config) {
  plan::Rotary& rotary = config.rotary;
  const double factor = fields.number_or("--rotary-scaling-factor", 1);
  const double of_all = fields.number_or("--mscale-all-dim", 0);
  const double once = yarn_factor(factor, of_all);
  if (config.is_latent() && once != 1)
    config.score_scale = once * once / std::sqrt(key_channels(config));
  const std::string type = fields.choice("--rope-type", {"yarn", "rope"});
  const std::string positions = fields.text("--position-embedding-type").value_or("");
  if (factor <= 1 || (config.is_latent() ? type != "yarn" : positions != "yarn"))
    return;
  rotary.scaling = RotaryScaling::Yarn;
  rotary.factor = factor;
  rotary.magnitude = yarn_factor(factor, fields.number_or("--mscale", 1)) / once;
  rotary.longest = latent_longest;
  if (config.is_latent())
    return;
  fields.size_or(rotary.longest, "--yarn-original-max-position-embeddings", latent_longest, 1,
                 plan::most_tokens);
  rotary.fast = fields.number_or("--yarn-beta-fast", 32);
  rotary.slow = fields.number_or("--yarn-beta-slow", 1);
}

void read_rotary(MegatronFields& fields, plan::TransformerConfig& config) {
  plan::Rotary& rotary = config.rotary;
  rotary.base = fields.number_or("--rotary-base", 10'000);
  if (rotary.base <= 1)
    fields.refuse("--rotary-base", "a number of more than 1 is needed here");
  rotary.share = fields.number_or("--rotary-percent", 1);
  if (rotary.share <= 0 || rotary.share > 1)
    fields.refuse("--rotary-percent", "a number of more than 0 and at most 1 is needed here");
  // Megatron's latent attention always rotates pairs of adjacent channels.
  rotary.neighbours = config.is_latent() || fields.has("--rotary-interleaved");
  read_yarn(fields, config);
  if (config.is_latent())
    return;
  if (fields.has("--use-rope-scaling")) {
    rotary.scaling = RotaryScaling::Llama3;
    rotary.factor = fields.number_or("--rope-scaling-factor", 8);
    rotary.longest = llama3_longest;
  } else if (const double factor = fields.number_or("--rotary-seq-len-interpolation-factor", 1);
             factor != 1) {
    rotary.scaling = RotaryScaling::Linear;
    rotary.factor = factor;
  }
}

/// Reads "128,0" or "(128,0)": the tokens before and behind one that it attends to. A causal mask
/// hides those behind it.
void read_window(MegatronFields& fields, plan::TransformerConfig& config) {
  const auto window = fields.text("--window-size");
  if (!window)
    return;
  const std::size_t begin = std::min(window->find_first_not_of("( "), window->size());
  int before = 0;
  const auto end = std::from_chars(window->data() + begin, window->data() + window->size(), before);
  if (end.ec != std::errc() || before >= plan::most_tokens)
    return fields.refuse("--window-size", "two numbers such as 4095,0 are needed here");
  config.window = std::max(0, before + 1);  // with the token itself; -1: all tokens
  const auto pattern = fields.text("--window-attn-skip-freq");
  if (!pattern || config.window == 0)
    return;
  int every = 0;
  const char* const last = pattern->data() + pattern->size();
  if (std::from_chars(pattern->data(), last, every).ptr == last && every > 0) {
    for (int layer = 1; layer <= config.layers; ++layer)
      config.windowed.push_back(layer % every != 0);
    return;
  }
  try {
    config.windowed = plan::layer_pattern(*pattern, config.layers);
  } catch (const plan::InputError& error) {
    fields.refuse("--window-attn-skip-freq", error.what());
  }
}

void read_router(MegatronFields& fields, plan::TransformerConfig& config) {
  const std::string scores =
      fields.choice("--moe-router-score-function", {"softmax", "sigmoid", "sqrtsoftplus"});
  if (scores == "sigmoid")
    config.router_scores = plan::RouterScores::Sigmoid;
  else if (scores != "softmax")
    fields.refuse("--moe-router-score-function",
                  fmt::format("{} is not supported (possible: softmax or sigmoid)", scores));
  if (scores == "softmax" && config.router_bias)
    fields.refuse("--moe-router-enable-expert-bias",
                  "Megatron-LM supports it only with --moe-router-score-function sigmoid");
  // With biases, Megatron's router has one as well.
  config.router_bias = config.router_bias || (scores == "softmax" && config.feed_forward_bias);
  const bool before = fields.has("--moe-router-pre-softmax");
  config.weights_sum_to_one = config.experts_per_token > 1 && !(scores == "softmax" && before);
  const double scale = fields.number_or("--moe-router-topk-scaling-factor", 1);
  config.routed_scale = scale > 0 ? scale : 1;
  int chosen = 0;
  fields.size_or(chosen, "--moe-router-group-topk", 0);
  if (chosen == 0)
    return;
  fields.size_or(config.router_groups, "--moe-router-num-groups", 1);
  config.groups_per_token = chosen;
}

}  // namespace

void read_variants(MegatronFields& fields, plan::TransformerConfig& config) {
  config.norm_epsilon = fields.number_or("--norm-epsilon", 1e-5);
  config.norm_plus_one = fields.has("--apply-layernorm-1p");
  // Megatron's fused kernel for a bias and GELU has the tanh approximation.
  if (!config.gated && config.feed_forward_bias && !fields.has("--no-bias-gelu-fusion"))
    config.activation = plan::Activation::Tanh;
  if (!config.learned_positions || config.is_latent())
    read_rotary(fields, config);
  read_window(fields, config);
  if (config.experts > 0)
    read_router(fields, config);
}

}  // namespace pipewright::models
