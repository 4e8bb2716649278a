#include "pipewright/sim/planner/plan_files.hpp"

#include <fmt/format.h>

#include "pipewright/plan/model/model_descriptor.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"
#include "pipewright/plan/partitioners/layout.hpp"
#include "pipewright/plan/transformer/transformer_costs.hpp"

namespace pipewright::sim {
namespace {

using plan::Cut;
using plan::TransformerTraining;

/// The first layer of each stage, and behind the last one.
std::vector<int> layer_borders(const Cut& cut, int layers) {
  std::vector<int> borders{0};
  for (int stage = 0; stage < cut.stages(); ++stage)
    borders.push_back(borders.back() + cut.layers_of(stage, layers));
  return borders;
}

/// The embedding is the first layer; the head is on the last stage.
std::vector<int> boundaries_of(const Cut& cut, int layers) {
  std::vector<int> boundaries = layer_borders(cut, layers);
  for (std::size_t stage = 1; stage < boundaries.size(); ++stage)
    ++boundaries[stage];
  ++boundaries.back();
  return boundaries;
}

/// Megatron-LM's name of each layer: the embedding, transformer layers, the loss.
std::string megatron_layout(const Cut& cut, int layers) {
  plan::Layout layout;
  for (int stage = 0; stage < cut.stages(); ++stage)
    layout.stages.emplace_back(static_cast<std::size_t>(cut.layers_of(stage, layers)), 't');
  layout.stages.front().insert(0, 1, 'E');
  layout.stages.back() += 'L';
  return plan::to_string(layout);
}

}  // namespace

plan::Scenario scenario_of(const plan::Cluster& cluster, const TransformerTraining& training,
                           const Cut& cut) {
  const std::string& name = training.model.name;
  plan::Scenario scenario;
  scenario.name = fmt::format("{}-tp{}-pp{}-dp{}", name.empty() ? "plan" : name, cut.tensor,
                              cut.pipeline, cut.data);
  scenario.model = plan::shape_of(training);
  scenario.data = {.kind = std::string(plan::tokens_data.name), .path = "tokens.bin"};
  scenario.cluster = cluster;
  scenario.cluster.machine = plan::machine_of(cluster);
  plan::Pipeline& pipeline = scenario.pipeline;
  pipeline.ranks = cut.pipeline;
  pipeline.microbatches = cut.microbatches(training.batch);
  pipeline.schedule = std::string(cut.schedule_name());
  pipeline.chunks = cut.chunks;
  pipeline.partition = boundaries_of(cut, training.model.layers);
  pipeline.blocking = true;  // a transfer holds both ends, as Megatron's do
  pipeline.replicas = cut.data;
  pipeline.tensor = cut.tensor;
  pipeline.sequence_parallel = cut.sequence_parallel;
  pipeline.context = cut.context;
  pipeline.expert = cut.expert;
  pipeline.overlap_reductions = cut.zero >= 2;  // which sums the gradients of each microbatch
  plan::Training& trained = scenario.training;
  trained.microbatch_size = cut.microbatch;
  trained.precision = plan::Precision::Mixed;
  trained.fp32_gradients = true;
  trained.zero = cut.zero;
  trained.recompute = cut.recompute;
  return scenario;
}

std::string megatron_arguments(const TransformerTraining& training, const Cut& cut) {
  const plan::TransformerConfig& model = training.model;
  // Megatron-LM runs 1F1B, interleaved or not, and sums gradients behind the last microbatch.
  if (!cut.schedule.empty() || cut.zero >= 2)
    return "";
  std::string text = fmt::format(
      "--num-layers {} --hidden-size {} --num-attention-heads {} --seq-length {} "
      "--micro-batch-size {} --global-batch-size {} --tensor-model-parallel-size {} "
      "--pipeline-model-parallel-size {}",
      model.layers, model.hidden, model.heads, training.sequence, cut.microbatch, training.batch,
      cut.tensor, cut.pipeline);
  const auto add = [&](bool when, const std::string& words) {
    if (when)
      text += " " + words;
  };
  add(model.feed_forward > 0, fmt::format("--ffn-hidden-size {}", model.feed_forward));
  add(model.kv_heads > 0 && model.kv_heads != model.heads,
      fmt::format("--group-query-attention --num-query-groups {}", model.kv_heads));
  add(model.gated, "--swiglu");
  add(cut.stage_layers.empty() && cut.chunks > 1,
      fmt::format("--num-layers-per-virtual-pipeline-stage {}", model.layers / cut.stages()));
  add(!cut.stage_layers.empty(),
      fmt::format("--pipeline-model-parallel-layout '{}'", megatron_layout(cut, model.layers)));
  add(cut.context > 1, fmt::format("--context-parallel-size {}", cut.context));
  add(model.has_mixture(), fmt::format("--num-experts {} --moe-router-topk {} "
                                       "--expert-model-parallel-size {}",
                                       model.experts, model.experts_per_token, cut.expert));
  add(cut.sequence_parallel, "--sequence-parallel");
  add(cut.zero > 0, "--use-distributed-optimizer");
  add(cut.recompute == plan::RecomputeMode::Selective, "--recompute-activations");
  add(cut.recompute == plan::RecomputeMode::Full,
      "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1");
  return text;
}

}  // namespace pipewright::sim
