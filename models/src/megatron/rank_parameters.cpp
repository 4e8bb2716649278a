#include "rank_parameters.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace pipewright::models::megatron {
namespace {

/// A product's weight: outputs × inputs, this rank's part.
struct Weight {
  long long outputs = 0;
  long long inputs = 0;
  bool biased = true;
  long long size() const { return outputs * inputs; }
};

long long norm_parameters(const MegatronRun& run, long long channels) {
  return run.training.model.norm == plan::NormKind::Layer ? 2 * channels : channels;
}

/// Returns the weights for queries, keys and values and the output projection (arXiv 2405.04434 for
/// latent attention).
std::vector<Weight> attention_weights(const MegatronRun& run) {
  const plan::TransformerConfig& m = run.training.model;
  const long long hidden = m.hidden, tensor = run.cut.tensor, heads = m.heads;
  if (!m.is_latent()) {
    const long long queries = heads * m.head_channels,
                    keys = static_cast<long long>(m.kv_heads) * m.head_channels;
    return {{(queries + 2 * keys) / tensor, hidden}, {hidden, queries / tensor}};
  }
  const long long query = heads * (m.head_channels + m.rope_channels) / tensor;
  std::vector<Weight> weights{
      {m.kv_rank + m.rope_channels, hidden, false},
      {heads * (m.head_channels + m.value_channels) / tensor, m.kv_rank, false},
      {hidden, heads * m.value_channels / tensor}};
  if (m.q_rank > 0) {
    weights.push_back({m.q_rank, hidden, false});
    weights.push_back({query, m.q_rank, false});
  } else {
    weights.push_back({query, hidden, false});
  }
  return weights;
}

/// Returns the weights up to `channels`, twice if gated, and back down.
std::vector<Weight> feed_forward_weights(const MegatronRun& run, long long channels,
                                         long long tensor, bool biased) {
  const long long hidden = run.training.model.hidden;
  const long long gates = run.training.model.gated ? 2 : 1;
  return {{gates * channels / tensor, hidden, biased}, {hidden, channels / tensor, biased}};
}

std::vector<Weight> shared_expert_weights(const MegatronRun& run) {
  const int shared = run.training.model.shared_feed_forward;
  if (shared == 0)
    return {};
  return feed_forward_weights(run, shared, run.cut.tensor, false);
}

std::vector<Weight> expert_weights(const MegatronRun& run) {
  return feed_forward_weights(run, run.training.model.expert_feed_forward, run.cut.expert_cut(),
                              run.bias && !run.grouped_experts);
}

std::vector<Weight> mamba_weights(const MegatronRun& run) {
  const MambaSizes& mamba = run.mamba;
  const long long hidden = run.training.model.hidden, tensor = run.cut.tensor;
  const long long in = 2 * mamba.width() + 2 * mamba.groups * mamba.states + mamba.heads;
  return {{in / tensor, hidden, false}, {hidden, mamba.width() / tensor, false}};
}

long long sum_of(const MegatronRun& run, const std::vector<Weight>& weights) {
  long long sum = 0;
  for (const Weight& weight : weights)
    sum += weight.size() + (run.bias && weight.biased ? weight.outputs : 0);
  return sum;
}

/// Returns the parameters of query and key norms: over each head's channels, or over latent ones.
long long head_norms(const MegatronRun& run) {
  const plan::TransformerConfig& m = run.training.model;
  if (!m.head_norms)
    return 0;
  return m.is_latent() ? norm_parameters(run, m.q_rank + m.kv_rank)
                       : 2 * norm_parameters(run, m.head_channels);
}

/// Returns the parameters of the convolution over four tokens with its bias, three numbers per
/// head, and the gated norm.
long long mamba_others(const MegatronRun& run) {
  const MambaSizes& mamba = run.mamba;
  const long long convolved = mamba.width() + 2LL * mamba.groups * mamba.states;
  return (5 * convolved + 3LL * mamba.heads + mamba.width()) / run.cut.tensor;
}

Parameters expert_parameters(const MegatronRun& run) {
  const plan::TransformerConfig& m = run.training.model;
  const long long router = 1LL * m.hidden * m.experts;
  return {router + sum_of(run, shared_expert_weights(run)),
          m.experts / run.cut.expert * sum_of(run, expert_weights(run)), router};
}

Parameters without_norm(const MegatronRun& run, Part part) {
  switch (part) {
    case Part::Attention:
      return {sum_of(run, attention_weights(run)) + head_norms(run)};
    case Part::CrossAttention:
      return {sum_of(run, attention_weights(run))};
    case Part::FeedForward:
      return {sum_of(
          run, feed_forward_weights(run, run.training.model.feed_forward, run.cut.tensor, true))};
    case Part::Experts:
      return expert_parameters(run);
    case Part::Mamba:
      return {sum_of(run, mamba_weights(run)) + mamba_others(run)};
  }
  return {};
}

std::vector<Weight> product_weights(const MegatronRun& run, Part part) {
  switch (part) {
    case Part::Attention:
    case Part::CrossAttention:
      return attention_weights(run);
    case Part::FeedForward:
      return feed_forward_weights(run, run.training.model.feed_forward, run.cut.tensor, true);
    case Part::Experts: {
      auto weights = expert_weights(run);
      for (const Weight& weight : shared_expert_weights(run))
        weights.push_back(weight);
      return weights;
    }
    case Part::Mamba:
      return mamba_weights(run);
  }
  return {};
}

Parameters layer_parameters(const MegatronRun& run, const Layer& layer) {
  Parameters sum;
  for (const Part part : layer.parts)
    sum += part_parameters(run, part);
  return sum;
}

long long vocabulary_weight(const MegatronRun& run) {
  return 1LL * run.training.model.vocabulary * run.training.model.hidden / run.cut.tensor;
}

Parameters table(long long size) { return {size, 0, size}; }

/// Returns the parameters of BERT's head: a layer and a norm before the vocabulary's bias, and the
/// pooled layer for next-sentence prediction.
Parameters encoder_head(const MegatronRun& run) {
  const long long hidden = run.training.model.hidden;
  return {2 * (hidden * hidden + hidden) + norm_parameters(run, hidden) +
          run.training.model.vocabulary / run.cut.tensor + 2 * hidden + 2};
}

Parameters embedding_parameters(const MegatronRun& run) {
  const plan::TransformerConfig& m = run.training.model;
  Parameters sum = table(vocabulary_weight(run));
  if (m.learned_positions)
    sum += table(1LL * std::max(run.training.sequence, m.longest) * m.hidden);
  if (run.family == MegatronFamily::Encoder)
    sum += table(2LL * m.hidden);  // the sentence-type embedding
  return sum;
}

/// Returns the parameters of the last norm and the head, which may share its weight with an
/// embedding on the same stage.
Parameters head_parameters(const MegatronRun& run, const RankStage& stage) {
  const plan::TransformerConfig& m = run.training.model;
  Parameters sum{norm_parameters(run, m.hidden)};
  if (!m.tied || !stage.embedding)
    sum += table(vocabulary_weight(run));
  if (run.family == MegatronFamily::Encoder)
    sum += encoder_head(run);
  if (run.family == MegatronFamily::EncoderDecoder)
    sum += {norm_parameters(run, m.hidden) + m.vocabulary / run.cut.tensor};
  return sum;
}

/// Returns the parameters of the predictions. Each depth has its layers, a product that joins
/// hidden state and embedding, and three norms (DeepSeek-V3, arXiv 2412.19437, 2.2).
Parameters prediction_parameters(const MegatronRun& run, const RankStage& stage) {
  const long long hidden = run.training.model.hidden;
  Parameters sum;
  const std::size_t depths = run.shared_prediction
                                 ? std::min<std::size_t>(1, stage.predictions.size())
                                 : stage.predictions.size();
  for (std::size_t depth = 0; depth < depths; ++depth) {
    for (const Layer& layer : stage.predictions[depth])
      sum += layer_parameters(run, layer);
    sum += {2 * hidden * hidden / run.cut.tensor + 3 * norm_parameters(run, hidden)};
  }
  if (depths > 0 && !run.training.model.tied && !stage.embedding)
    sum += table(vocabulary_weight(run));
  return sum;
}

}  // namespace

Parameters& Parameters::operator+=(const Parameters& other) {
  dense += other.dense;
  experts += other.experts;
  unquantized += other.unquantized;
  return *this;
}

Parameters part_parameters(const MegatronRun& run, Part part) {
  Parameters sum = without_norm(run, part);
  sum.dense += norm_parameters(run, run.training.model.hidden);
  return sum;
}

Parameters rank_parameters(const MegatronRun& run, const std::vector<RankStage>& stages) {
  Parameters sum;
  for (const RankStage& stage : stages) {
    for (const Layer& layer : stage.layers)
      sum += layer_parameters(run, layer);
    if (stage.embedding)
      sum += embedding_parameters(run);
    sum += prediction_parameters(run, stage);
    if (stage.loss)
      sum += head_parameters(run, stage);
  }
  return sum;
}

long long distinct_weights(const MegatronRun& run, const std::vector<RankStage>& stages) {
  std::set<std::pair<long long, long long>> shapes;
  const auto add = [&](const std::vector<Layer>& layers) {
    for (const Layer& layer : layers)
      for (const Part part : layer.parts)
        for (const Weight& weight : product_weights(run, part))
          shapes.emplace(weight.outputs, weight.inputs);
  };
  const long long hidden = run.training.model.hidden;
  for (const RankStage& stage : stages) {
    add(stage.layers);
    for (const auto& depth : stage.predictions)
      add(depth);
    if (!stage.predictions.empty())
      shapes.emplace(hidden / run.cut.tensor, 2 * hidden);
    if (stage.loss)
      shapes.emplace(run.training.model.vocabulary / run.cut.tensor, hidden);
  }
  long long sum = 0;
  for (const auto& [outputs, inputs] : shapes)
    sum += outputs * inputs;
  return sum;
}

}  // namespace pipewright::models::megatron
