#include "trainers/megatron_model_faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/plan/error.hpp"
#include "trainers/megatron_model.hpp"

namespace pipewright::models {
namespace {

/// Returns the rotary embeddings with only the fields that their scaling uses.
plan::Rotary normal_form(const plan::Rotary& rotary, bool has_window) {
  using plan::RotaryScaling;
  plan::Rotary normal{.base = rotary.base,
                      .window_base = has_window ? rotary.window_base : 0,
                      .share = rotary.share,
                      .neighbors = rotary.neighbors,
                      .magnitude = rotary.magnitude};
  const bool by_length =
      rotary.scaling == RotaryScaling::Llama3 || rotary.scaling == RotaryScaling::Yarn;
  if (rotary.scaling == RotaryScaling::None || (rotary.factor == 1 && by_length))
    return normal;
  normal.scaling = rotary.scaling;
  normal.factor = rotary.factor;
  if (by_length)
    normal.longest = rotary.longest;
  if (rotary.scaling == RotaryScaling::Llama3)
    normal.low = rotary.low, normal.high = rotary.high;
  if (rotary.scaling == RotaryScaling::Yarn)
    normal.fast = rotary.fast, normal.slow = rotary.slow;
  return normal;
}

/// Sets the fields that have no effect to their defaults, and equivalent values to one of them.
void make_normal(plan::TransformerConfig& config, int sequence) {
  const plan::TransformerConfig none;
  config.name.clear();
  config.longest = std::max(config.longest, sequence);
  if (config.activation == plan::Activation::Usual)
    config.activation = config.gated ? plan::Activation::Silu : plan::Activation::Gelu;
  std::vector<bool> windowed;
  for (int layer = 0; layer < config.layers; ++layer)
    windowed.push_back(config.has_window(layer));
  const bool has_window = std::ranges::find(windowed, true) != windowed.end();
  config.window = has_window ? config.window : 0;
  config.window_from = 0;
  config.windowed = has_window ? windowed : none.windowed;
  if (!config.has_mixture()) {
    config.experts = config.experts_per_token = config.expert_feed_forward = 0;
    config.shared_feed_forward = 0;
    config.router_bias = none.router_bias;
    config.router_scores = none.router_scores;
    config.weights_sum_to_one = none.weights_sum_to_one;
    config.routed_scale = none.routed_scale;
    config.router_groups = 1;
    config.sparse.clear();
  } else if (std::ranges::find(config.sparse, false) == config.sparse.end()) {
    config.feed_forward = 0;
  }
  if (config.router_groups == 1)
    config.groups_per_token = 1;
  if (config.score_scale == 0)
    config.score_scale = 1 / std::sqrt(1.0 * config.head_channels + config.rope_channels);
  config.rotary = config.learned_positions && !config.is_latent()
                      ? none.rotary
                      : normal_form(config.rotary, has_window);
}

plan::Json normal_model(plan::TransformerShape shape) {
  make_normal(shape.config, shape.sequence);
  return to_json(plan::ModelShape(shape));
}

/// Returns true for the same value; for numbers, up to the digits that are written.
bool is_same(const plan::Json& one, const plan::Json& other) {
  if (!one.is_number() || !other.is_number())
    return one == other;
  const auto a = one.get<double>(), b = other.get<double>();
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

/// Adds the difference if Megatron chooses other groups of experts. It ranks them by the sum of
/// their best top-k / groups scores (group_limited_topk); DeepSeek-V2 by the best one, DeepSeek-V3
/// by the best two.
void add_router_faults(const plan::TransformerConfig& config, std::vector<std::string>& faults) {
  const bool is_sigmoid = config.router_scores == plan::RouterScores::Sigmoid;
  if (is_sigmoid && config.feed_forward_bias)
    faults.emplace_back("model.feed_forward_bias=true: its router would have another bias");
  if (config.groups_per_token == config.router_groups)
    return;
  const int ours = is_sigmoid ? std::min(2, config.experts / config.router_groups) : 1;
  const int theirs = config.experts_per_token / config.groups_per_token;
  if (ours != theirs)
    faults.push_back(fmt::format(
        "model.router_groups={}: it ranks groups by their best {} experts, this model by the best "
        "{}",
        config.router_groups, theirs, ours));
}

}  // namespace

std::vector<std::string> model_faults(const plan::TransformerShape& shape) {
  MegatronText arguments;
  add_model(arguments, shape);
  plan::TransformerShape theirs = shape;
  try {
    theirs.config = transformer_from_megatron(arguments.text(), "megatron.txt").training.model;
  } catch (const plan::InputError& error) {
    return {fmt::format("model: {}", error.what())};
  }
  std::vector<std::string> faults;
  const plan::Json ours = normal_model(shape), read = normal_model(theirs);
  for (const auto& [key, value] : ours.items())
    if (!is_same(value, read.at(key)))
      faults.push_back(fmt::format("model.{}={}: its arguments would make it {}", key, value.dump(),
                                   read.at(key).dump()));
  if (shape.config.has_mixture())
    add_router_faults(shape.config, faults);
  return faults;
}

}  // namespace pipewright::models
