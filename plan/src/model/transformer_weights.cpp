#include "transformer_weights.hpp"

#include <algorithm>
#include <cmath>

namespace pipewright::plan {
namespace {

Weight norm(const TransformerConfig& config, double channels, WeightCut cut = WeightCut::Whole) {
  return {.in = 1,
          .out = channels,
          .bias = config.norm == NormKind::Layer,
          .cut = cut,
          .multiplied = false};
}

void add_latent_attention(const TransformerConfig& c, std::vector<Weight>& weights) {
  const double queries = 1.0 * c.heads * (c.head_channels + c.rope_channels);
  const double values = 1.0 * c.heads * c.value_channels;
  if (c.q_rank > 0)
    weights.push_back({.in = 1.0 * c.hidden, .out = 1.0 * c.q_rank, .bias = c.query_bias});
  weights.push_back(
      {.in = 1.0 * c.hidden, .out = 1.0 * c.kv_rank + c.rope_channels, .bias = c.query_bias});
  if (c.latent_norms) {
    weights.push_back(norm(c, c.q_rank));
    weights.push_back(norm(c, c.kv_rank));
  }
  weights.push_back({.in = 1.0 * (c.q_rank > 0 ? c.q_rank : c.hidden),
                     .out = queries,
                     .cut = WeightCut::Columns});
  weights.push_back({.in = 1.0 * c.kv_rank,
                     .out = 1.0 * c.heads * c.head_channels + values,
                     .cut = WeightCut::Columns});
  weights.push_back(
      {.in = values, .out = 1.0 * c.hidden, .bias = c.projection_bias, .cut = WeightCut::Rows});
}

void add_attention(const TransformerConfig& c, std::vector<Weight>& weights) {
  weights.push_back(norm(c, c.hidden));
  if (c.is_latent())
    return add_latent_attention(c, weights);
  const double h = c.hidden, queries = 1.0 * c.heads * c.head_channels;
  const double keys = 1.0 * c.kv_heads * c.head_channels;
  const double values = 1.0 * c.kv_heads * c.value_channels;
  weights.push_back({.in = h, .out = queries, .bias = c.query_bias, .cut = WeightCut::Columns});
  weights.push_back(
      {.in = h, .out = keys + values, .bias = c.query_bias, .cut = WeightCut::KeyColumns});
  if (c.head_norms)
    for (int i = 0; i < 2; ++i)  // for queries and for keys
      weights.push_back(norm(c, c.head_channels));
  weights.push_back({.in = 1.0 * c.heads * c.value_channels,
                     .out = h,
                     .bias = c.projection_bias,
                     .cut = WeightCut::Rows});
}

/// Adds the weights of a feed-forward part. `experts` is 0 for a part that every token uses.
void add_feed_forward(const TransformerConfig& c, double width, double experts, double used,
                      std::vector<Weight>& weights) {
  for (int i = 0; i < (c.gated ? 2 : 1); ++i)
    weights.push_back({.in = 1.0 * c.hidden,
                       .out = width,
                       .bias = c.feed_forward_bias,
                       .cut = WeightCut::Columns,
                       .experts = experts,
                       .used = used});
  weights.push_back({.in = width,
                     .out = 1.0 * c.hidden,
                     .bias = c.feed_forward_bias,
                     .cut = WeightCut::Rows,
                     .experts = experts,
                     .used = used});
}

double ways(WeightCut cut, int tensor, int kv_heads) {
  switch (cut) {
    case WeightCut::Whole:
      return 1;
    case WeightCut::Columns:
    case WeightCut::Rows:
      return tensor;
    case WeightCut::KeyColumns:
      return std::min(tensor, kv_heads);
  }
  return 1;
}

}  // namespace

double padded_vocabulary(const TransformerConfig& config, int tensor) {
  const double multiple = 1.0 * config.vocabulary_multiple * tensor;
  return std::ceil(config.vocabulary / multiple) * multiple;
}

std::vector<Weight> weights_of_embedding(const TransformerConfig& config, int tensor) {
  std::vector<Weight> weights{{.in = padded_vocabulary(config, tensor),
                               .out = 1.0 * config.hidden,
                               .cut = WeightCut::Rows,
                               .multiplied = false}};
  if (config.learned_positions)
    weights.push_back(
        {.in = 1.0 * config.longest, .out = 1.0 * config.hidden, .multiplied = false});
  return weights;
}

std::vector<Weight> weights_of_layer(const TransformerConfig& config, bool sparse) {
  std::vector<Weight> weights;
  add_attention(config, weights);
  for (int i = 0; i < (config.post_norms ? 3 : 1); ++i)
    weights.push_back(norm(config, config.hidden));
  if (!sparse) {
    add_feed_forward(config, config.feed_forward, 0, 0, weights);
    return weights;
  }
  weights.push_back(
      {.in = 1.0 * config.hidden, .out = 1.0 * config.experts, .bias = config.router_bias});
  add_feed_forward(config, config.expert_feed_forward, config.experts, config.experts_per_token,
                   weights);
  if (config.shared_feed_forward > 0)
    add_feed_forward(config, config.shared_feed_forward, 0, 0, weights);
  return weights;
}

std::vector<Weight> weights_of_prediction(const TransformerConfig& config) {
  auto weights = weights_of_layer(config, config.has_experts(config.layers - 1));
  for (int i = 0; i < 3; ++i)  // for the token, for the previous layer's output, and for the result
    weights.push_back(norm(config, config.hidden));
  weights.push_back(
      {.in = 2.0 * config.hidden, .out = 1.0 * config.hidden, .cut = WeightCut::Columns});
  return weights;
}

std::vector<Weight> weights_of_head(const TransformerConfig& config, int tensor) {
  return {norm(config, config.hidden),
          {.in = 1.0 * config.hidden,
           .out = padded_vocabulary(config, tensor),
           .cut = WeightCut::Columns,
           .tied = config.tied}};
}

WeightTotal weight_total(const std::vector<Weight>& weights, const Cut& cut, int kv_heads) {
  WeightTotal sum;
  for (const Weight& weight : weights) {
    const double bias = weight.bias ? weight.out : 0, one = weight.in * weight.out + bias;
    const double parts = ways(weight.cut, cut.tensor, kv_heads);
    const double here =
        weight.in * weight.out / parts + (weight.cut == WeightCut::Rows ? bias : bias / parts);
    const bool routed = weight.experts > 0;
    const double all = routed ? weight.experts * one : one;
    const double held = routed ? weight.experts / cut.expert * here : here;
    sum.parameters += all;
    sum.active_parameters += routed ? weight.used * one : one;
    sum.tied_parameters += weight.tied ? all : 0;
    sum.device_parameters += held;
    if (routed) {
      sum.expert_parameters += all;
      sum.device_expert_parameters += held;
    }
    // Weights that are not cut by channels are applied to a part of the tokens under sequence
    // parallelism.
    const bool cuts_tokens = weight.cut == WeightCut::Whole && cut.sequence_parallel;
    const double tokens = (routed ? weight.used : 1.0) / (cuts_tokens ? cut.tensor : 1);
    const double flops = weight.multiplied ? 2 * tokens * weight.in * weight.out / parts : 0;
    sum.token_flops += flops;
    sum.expert_token_flops += routed ? flops : 0;
  }
  return sum;
}

}  // namespace pipewright::plan
