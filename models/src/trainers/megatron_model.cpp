#include "trainers/megatron_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace pipewright::models {
namespace {

/// Returns the layers with a flag as Megatron's list: "'([0]*3+[1]*58)'".
std::string layer_list(const std::vector<bool>& flags) {
  std::vector<std::string> runs;
  for (auto begin = flags.begin(); begin != flags.end();) {
    const auto end = std::find(begin, flags.end(), !*begin);
    runs.push_back(fmt::format("[{}]*{}", *begin ? 1 : 0, end - begin));
    begin = end;
  }
  return fmt::format("'({})'", fmt::join(runs, "+"));
}

void add_attention(MegatronText& arguments, const plan::TransformerConfig& config) {
  if (config.is_latent()) {
    arguments.add("--multi-latent-attention");
    arguments.add("--kv-channels", config.head_channels);
    if (config.q_rank > 0)
      arguments.add("--q-lora-rank", config.q_rank);
    arguments.add("--kv-lora-rank", config.kv_rank);
    arguments.add("--qk-head-dim", config.head_channels);
    arguments.add("--qk-pos-emb-head-dim", config.rope_channels);
    arguments.add("--v-head-dim", config.value_channels);
    arguments.add_if(config.latent_norms, "--qk-layernorm");
    return;
  }
  arguments.add("--kv-channels", config.head_channels);
  if (config.kv_heads != config.heads)
    arguments.add(fmt::format("--group-query-attention --num-query-groups {}", config.kv_heads));
  arguments.add_if(config.head_norms, "--qk-layernorm");
}

void add_experts(MegatronText& arguments, const plan::TransformerConfig& config) {
  arguments.add("--num-experts", config.experts);
  arguments.add("--moe-router-topk", config.experts_per_token);
  arguments.add("--moe-ffn-hidden-size", config.expert_feed_forward);
  if (config.shared_feed_forward > 0)
    arguments.add("--moe-shared-expert-intermediate-size", config.shared_feed_forward);
  arguments.add("--moe-layer-freq " + layer_list(config.sparse));
}

void add_yarn(MegatronText& arguments, const plan::TransformerConfig& config) {
  const plan::Rotary& rotary = config.rotary;
  const double each = 0.1 * std::log(rotary.factor);  // YaRN multiplies by 1 + each * mscale
  double once = 1;
  if (config.is_latent() && config.score_scale > 0)
    once = std::sqrt(config.score_scale *
                     std::sqrt(1.0 * config.head_channels + config.rope_channels));
  if (!config.is_latent()) {
    arguments.add("--yarn-original-max-position-embeddings", rotary.longest);
    arguments.add_number("--yarn-beta-fast", rotary.fast);
    arguments.add_number("--yarn-beta-slow", rotary.slow);
  }
  arguments.add_number("--rotary-scaling-factor", rotary.factor);
  arguments.add_number("--mscale", each > 0 ? (rotary.magnitude * once - 1) / each : 1);
  arguments.add_number("--mscale-all-dim", each > 0 ? (once - 1) / each : 0);
}

void add_rotary(MegatronText& arguments, const plan::TransformerConfig& config) {
  const plan::Rotary& rotary = config.rotary;
  const bool is_yarn = rotary.scaling == plan::RotaryScaling::Yarn;
  if (!config.learned_positions)
    arguments.add(fmt::format("--position-embedding-type {}",
                              is_yarn && !config.is_latent() ? "yarn" : "rope"));
  if (config.learned_positions && !config.is_latent())
    return;
  arguments.add(fmt::format("--rotary-base {:.0f}", rotary.base));  // a whole number for argparse
  if (rotary.share != 1)
    arguments.add_number("--rotary-percent", rotary.share);
  arguments.add_if(rotary.neighbors && !config.is_latent(), "--rotary-interleaved");
  if (config.is_latent())  // Megatron's fused kernel for it has YaRN only
    arguments.add(is_yarn ? "--rope-type yarn" : "--rope-type rope --no-rope-fusion");
  if (is_yarn)
    add_yarn(arguments, config);
  if (rotary.scaling == plan::RotaryScaling::Llama3) {
    arguments.add("--use-rope-scaling");
    arguments.add_number("--rope-scaling-factor", rotary.factor);
  }
  if (rotary.scaling == plan::RotaryScaling::Linear)
    arguments.add(fmt::format("--rotary-seq-len-interpolation-factor {:.0f}", rotary.factor));
}

void add_window(MegatronText& arguments, const plan::TransformerConfig& config) {
  std::vector<bool> flags;
  for (int layer = 0; layer < config.layers; ++layer)
    flags.push_back(config.has_window(layer));
  if (std::ranges::find(flags, true) == flags.end())
    return;
  arguments.add(fmt::format("--window-size {},0", config.window - 1));
  if (std::ranges::find(flags, false) != flags.end())
    arguments.add("--window-attn-skip-freq " + layer_list(flags));
}

void add_router(MegatronText& arguments, const plan::TransformerConfig& config) {
  const bool is_sigmoid = config.router_scores == plan::RouterScores::Sigmoid;
  arguments.add_if(is_sigmoid, "--moe-router-score-function sigmoid");
  arguments.add_if(is_sigmoid && config.router_bias, "--moe-router-enable-expert-bias");
  arguments.add_if(!is_sigmoid && !config.weights_sum_to_one, "--moe-router-pre-softmax");
  if (config.router_groups > 1) {
    arguments.add("--moe-router-num-groups", config.router_groups);
    arguments.add("--moe-router-group-topk", config.groups_per_token);
  }
  if (config.routed_scale != 1)
    arguments.add_number("--moe-router-topk-scaling-factor", config.routed_scale);
}

void add_variants(MegatronText& arguments, const plan::TransformerConfig& config) {
  arguments.add_number("--norm-epsilon", config.norm_epsilon);
  arguments.add_if(config.norm_plus_one, "--apply-layernorm-1p");
  const bool is_exact =
      config.activation == plan::Activation::Usual || config.activation == plan::Activation::Gelu;
  arguments.add_if(!config.gated && config.feed_forward_bias && is_exact, "--no-bias-gelu-fusion");
  add_rotary(arguments, config);
  add_window(arguments, config);
  if (config.has_mixture())
    add_router(arguments, config);
}

}  // namespace

void add_model(MegatronText& arguments, const plan::TransformerShape& shape) {
  const plan::TransformerConfig& config = shape.config;
  arguments.add("--num-layers", config.layers);
  arguments.add("--hidden-size", config.hidden);
  arguments.add("--num-attention-heads", config.heads);
  add_attention(arguments, config);
  // A model without dense layers may have no width for them, but Megatron needs one.
  arguments.add("--ffn-hidden-size",
                config.feed_forward > 0 ? config.feed_forward : config.expert_feed_forward);
  arguments.add_if(config.gated, "--swiglu");
  if (config.has_mixture())
    add_experts(arguments, config);
  arguments.add("--vocab-size", config.vocabulary);
  arguments.add("--make-vocab-size-divisible-by", config.vocabulary_multiple);
  arguments.add_if(config.norm == plan::NormKind::Root, "--normalization RMSNorm");
  arguments.add_if(!config.tied, "--untie-embeddings-and-output-weights");
  arguments.add_if(!config.projection_bias, "--disable-bias-linear");
  arguments.add_if(!config.projection_bias && config.query_bias, "--add-qkv-bias");
  arguments.add_if(!config.dropout, "--attention-dropout 0 --hidden-dropout 0");
  add_variants(arguments, config);
  if (config.predictions > 0)
    arguments.add("--mtp-num-layers", config.predictions);
  arguments.add("--seq-length", shape.sequence);
  arguments.add("--max-position-embeddings", std::max(config.longest, shape.sequence));
}

}  // namespace pipewright::models
