#include "pipewright/plan/runs/run_of_transformer.hpp"

#include <algorithm>

namespace pipewright::plan {
namespace {

RunRecompute run_recompute(RecomputeMode mode) {
  switch (mode) {
    case RecomputeMode::None:
      return RunRecompute::None;
    case RecomputeMode::Selective:
      return RunRecompute::Selective;
    case RecomputeMode::Full:
      return RunRecompute::Full;
  }
  return RunRecompute::None;
}

void set_mixture(TrainingRun& run, const TransformerConfig& config) {
  const auto first = std::find(config.sparse.begin(), config.sparse.end(), true);
  if (config.experts == 0 || first == config.sparse.end())
    return;
  run.experts = config.experts;
  run.experts_per_token = config.experts_per_token;
  run.expert_feed_forward = config.expert_feed_forward;
  run.shared_experts = config.shared_feed_forward / config.expert_feed_forward;
  run.dense_layers = static_cast<int>(first - config.sparse.begin());
}

}  // namespace

TrainingRun run_of(const DescribedTransformer& transformer) {
  const TransformerConfig& config = transformer.config;
  const TransformerSharding& sharding = transformer.sharding;
  TrainingRun run;
  run.id = run.model = config.name;
  run.layers = config.layers;
  run.hidden = config.hidden;
  run.heads = config.heads;
  run.kv_heads = config.kv_heads;
  run.head_channels = config.head_channels;
  run.feed_forward = config.feed_forward;
  run.gated = config.gated;
  run.vocabulary = config.vocabulary;
  set_mixture(run, config);
  run.q_rank = config.q_rank;
  run.kv_rank = config.kv_rank;
  run.rope_channels = config.rope_channels;
  run.sequence = sharding.sequence;
  run.gpus = sharding.tensor * sharding.context;
  run.tensor = sharding.tensor;
  run.context = sharding.context;
  run.expert = sharding.expert;
  run.global_batch = run.microbatch = sharding.microbatch;
  run.sequence_parallel = sharding.sequence_parallel;
  run.recompute = run_recompute(transformer.recompute);
  run.attention = sharding.attention;
  return run;
}

}  // namespace pipewright::plan
