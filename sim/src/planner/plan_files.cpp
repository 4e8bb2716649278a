#include "pipewright/sim/planner/plan_files.hpp"

#include <fmt/format.h>

#include "pipewright/plan/model/gpt_model.hpp"
#include "pipewright/plan/partitioners/layout.hpp"
#include "pipewright/sim/calibration/run_costs.hpp"

namespace pipewright::sim {
namespace {

using plan::Cut;
using plan::TransformerTraining;

/// Blocks are the model's layers; the embedding comes before, the norm and the head behind. A
/// scenario reads text byte by byte: the costs are those of the model's own vocabulary.
plan::GptShape shape_of(const TransformerTraining& training) {
  return {.blocks = training.model.layers,
          .hidden = training.model.hidden,
          .heads = training.model.heads,
          .sequence = training.sequence,
          .vocabulary = 256};
}

/// The first layer of each stage, and behind the last one.
std::vector<int> layer_borders(const Cut& cut, int layers) {
  std::vector<int> borders{0};
  for (int stage = 0; stage < cut.stages(); ++stage)
    borders.push_back(borders.back() + cut.layers_of(stage, layers));
  return borders;
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
  scenario.model = shape_of(training);
  scenario.cluster = step_costs(cluster, training, cut).cluster;
  scenario.cluster.name =
      fmt::format("{}, {} devices a rank", cluster.name, cut.devices_of_stage());
  scenario.cluster.device = cluster.device;
  scenario.cluster.device.memory = {};  // a rank is several: the search has held them against it
  plan::Pipeline& pipeline = scenario.pipeline;
  pipeline.ranks = cut.pipeline;
  pipeline.microbatches = cut.microbatches(training.batch);
  pipeline.schedule = std::string(cut.schedule_name());
  pipeline.chunks = cut.chunks;
  pipeline.blocking = true;
  const auto layers = static_cast<int>(plan::gpt_model(shape_of(training)).layers.size());
  // The embedding is the first layer; the norm and the head are on the last stage.
  std::vector<int> boundaries = layer_borders(cut, training.model.layers);
  for (std::size_t stage = 1; stage + 1 < boundaries.size(); ++stage)
    ++boundaries[stage];
  boundaries.back() = layers;
  pipeline.partition = std::move(boundaries);
  scenario.training.microbatch_size = cut.microbatch;
  scenario.data = {.kind = "text", .path = "text.txt"};
  return scenario;
}

plan::LayerCosts layer_costs_of(const plan::Cluster& cluster, const TransformerTraining& training,
                                const Cut& cut) {
  const plan::TransformerTimes times = times_on(cluster, training, cut);
  const StepCosts steps = step_costs(cluster, training, cut);
  plan::LayerCosts costs;
  costs.device = cluster.device.name;
  costs.dtype = "float32";
  costs.software = "analytic";
  costs.microbatch_size = cut.microbatch;
  const plan::Model model = plan::gpt_model(shape_of(training));
  const std::vector<int> borders = layer_borders(cut, training.model.layers);
  std::size_t stage = 0;
  for (std::size_t at = 0; at < model.layers.size(); ++at) {
    plan::LayerCost& layer = costs.layers.emplace_back();
    layer.name = model.layers[at].name;
    layer.output = times.hop_size;
    const int block = static_cast<int>(at) - 1;
    const bool is_block = block >= 0 && block < training.model.layers;
    plan::PassSeconds passes;
    if (at == 0) {
      passes = times.embedding;
    } else if (is_block) {
      passes = block < training.model.leading_dense_layers() ? times.dense_layer : times.layer;
      if (block == borders[stage])
        layer.optimizer_step = steps.stages[stage++].optimizer_step;
    } else if (at + 1 == model.layers.size()) {
      passes = times.head;
    }
    layer.forward = {passes.forward};
    layer.input_gradient = layer.weight_gradient = {passes.backward / 2};
    layer.parameters = model.layers[at].parameter_bytes;  // those that the scenario's model has
  }
  costs.loss.name = "loss";
  return costs;
}

std::string megatron_arguments(const TransformerTraining& training, const Cut& cut) {
  const plan::TransformerConfig& model = training.model;
  if (!cut.schedule.empty())  // Megatron-LM runs 1F1B, interleaved or not
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
