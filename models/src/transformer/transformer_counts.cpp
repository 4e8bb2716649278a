#include "pipewright/models/transformer/transformer_counts.hpp"

#include <algorithm>

namespace pipewright::models {

double dense_share(const plan::TransformerConfig& model) {
  return model.has_mixture() ? std::min(1.0, 1.0 * model.leading_dense_layers() / model.layers) : 1;
}

double expert_parameters(const plan::TransformerConfig& model, double dense_share) {
  return (1 - dense_share) * (model.gated ? 3.0 : 2.0) * model.hidden * model.expert_feed_forward *
         model.experts;
}

double layer_parameters(const plan::TransformerConfig& model, double dense_share) {
  const double h = model.hidden, d = model.head_channels, a = model.heads, q = model.q_rank;
  const double kv = model.kv_rank, rope = model.rope_channels;
  const double queries_from = q > 0 ? q : h;
  const double projections =
      model.is_latent()
          ? h * (q + kv + rope) + queries_from * a * (d + rope) + kv * a * 2 * d + a * d * h
          : h * d * (2.0 * a + 2.0 * model.kv_heads);
  const double matrices = model.gated ? 3 : 2;
  const double shared = 1.0 * model.shared_feed_forward + model.experts / matrices;
  const double always = dense_share * model.feed_forward + (1 - dense_share) * shared;
  return projections + matrices * h * always + expert_parameters(model, dense_share) +
         (model.gated ? 2 * h : 13 * h);
}

double expert_parameters(const plan::TransformerConfig& model) {
  return expert_parameters(model, dense_share(model));
}

double layer_parameters(const plan::TransformerConfig& model) {
  return layer_parameters(model, dense_share(model));
}

double embedding_parameters(const plan::TransformerTraining& training) {
  const plan::TransformerConfig& model = training.model;
  return (1.0 * model.vocabulary + (model.learned_positions ? training.sequence : 0)) *
         model.hidden;
}

double head_parameters(const plan::TransformerConfig& model) {
  return 1.0 * model.vocabulary * model.hidden;
}

double training_flops(const plan::TransformerTraining& training) {
  const plan::TransformerConfig& model = training.model;
  const double tokens = 1.0 * training.batch * training.sequence;
  // A token uses only some of the routed experts.
  const double met = model.has_mixture() ? 1.0 * model.experts_per_token / model.experts : 1;
  const double layer = layer_parameters(model) - (1 - met) * expert_parameters(model);
  const double scores = 12.0 * model.layers * model.heads * model.head_channels * training.sequence;
  return tokens * (6 * (model.layers * layer + head_parameters(model)) + scores);
}

}  // namespace pipewright::models
