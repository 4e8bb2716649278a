// Decoders of several families, small enough that a step takes milliseconds. Widths are divisible
// only by what heads need.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "exec/support/small_gpt.hpp"
#include "pipewright/engine/models/transformer.hpp"

namespace pipewright::test {

/// A model in which each two query heads share a key and value head.
inline plan::TransformerShape small_llama() {
  return {.config = {.layers = 4,
                     .hidden = 20,
                     .heads = 8,
                     .kv_heads = 4,
                     .head_channels = 6,
                     .value_channels = 6,
                     .feed_forward = 43,
                     .vocabulary = 37,
                     .gated = true},
          .sequence = 8};
}

inline plan::TransformerShape small_gpt2() {
  return {.config = {.layers = 4,
                     .hidden = 20,
                     .heads = 4,
                     .kv_heads = 4,
                     .head_channels = 5,
                     .value_channels = 5,
                     .feed_forward = 43,
                     .vocabulary = 37,
                     .longest = 11,
                     .learned_positions = true,
                     .tied = true,
                     .norm = plan::NormKind::Layer,
                     .query_bias = true,
                     .projection_bias = true,
                     .feed_forward_bias = true},
          .sequence = 8};
}

/// A model with normalization of queries and keys per head, and another width for values.
inline plan::TransformerShape small_qwen() {
  plan::TransformerShape shape = small_llama();
  shape.config.tied = shape.config.head_norms = shape.config.query_bias = true;
  shape.config.value_channels = 3;
  return shape;
}

/// A model with a dense layer followed by mixture-of-experts layers with shared experts.
inline plan::TransformerShape small_mixture() {
  plan::TransformerShape shape = small_llama();
  shape.config.experts = 5;
  shape.config.experts_per_token = 2;
  shape.config.expert_feed_forward = 11;
  shape.config.shared_feed_forward = 6;
  shape.config.set_mixture_behind(1);
  return shape;
}

/// A mixture model in which all linear layers that can have a bias have one, and each token goes to
/// all experts.
inline plan::TransformerShape small_biased_mixture() {
  plan::TransformerShape shape = small_gpt2();
  shape.config.experts = shape.config.experts_per_token = 3;
  shape.config.expert_feed_forward = 9;
  shape.config.shared_feed_forward = 7;
  shape.config.router_bias = true;
  shape.config.set_mixture_behind(0);
  return shape;
}

using NamedShapes = std::vector<std::pair<std::string, plan::TransformerShape>>;

inline NamedShapes small_transformers() {
  return {{"llama", small_llama()}, {"gpt2", small_gpt2()}, {"qwen", small_qwen()}};
}

inline NamedShapes small_mixtures() {
  return {{"mixture", small_mixture()}, {"biased mixture", small_biased_mixture()}};
}

inline NamedShapes all_small_transformers() {
  NamedShapes all = small_transformers();
  for (auto& mixture : small_mixtures())
    all.push_back(std::move(mixture));
  return all;
}

/// Returns a training of six layers on the small GPT's data.
inline exec::TrainingSetup small_setup_of(const plan::TransformerShape& shape, int groups = 0,
                                          exec::Tokens tokens = exec::Tokens::Whole) {
  auto setup = small_setup();
  setup.layers = engine::transformer_layers(shape, tokens);
  setup.tensor_groups = groups;
  return setup;
}

}  // namespace pipewright::test
