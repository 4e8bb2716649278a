#include "pipewright/sim/planner/plan_files.hpp"

#include <fmt/format.h>

#include "pipewright/plan/model/gpt_model.hpp"
#include "pipewright/plan/partitioners/layout.hpp"
#include "pipewright/sim/calibration/run_costs.hpp"

namespace pipewright::sim {
namespace {

using plan::TrainingRun;

/// Blocks are the model's layers; the embedding comes before, the norm and the head behind. A
/// scenario reads text byte by byte: the costs are those of the model's own vocabulary.
plan::GptShape shape_of(const TrainingRun& run) {
  return {.blocks = run.layers,
          .hidden = run.hidden,
          .heads = run.heads,
          .sequence = run.sequence,
          .vocabulary = 256};
}

/// The first layer of each stage, and behind the last one.
std::vector<int> layer_borders(const TrainingRun& run) {
  std::vector<int> borders{0};
  for (int stage = 0; stage < run.stages(); ++stage)
    borders.push_back(borders.back() + run.layers_of(stage));
  return borders;
}

/// Megatron-LM's name of each layer: the embedding, transformer layers, the loss.
std::string megatron_layout(const TrainingRun& run) {
  plan::Layout layout;
  for (int stage = 0; stage < run.stages(); ++stage)
    layout.stages.emplace_back(static_cast<std::size_t>(run.layers_of(stage)), 't');
  layout.stages.front().insert(0, 1, 'E');
  layout.stages.back() += 'L';
  return plan::to_string(layout);
}

}  // namespace

plan::Scenario scenario_of(const plan::Cluster& cluster, const FoundPlan& found) {
  const TrainingRun& run = found.run;
  plan::Scenario scenario;
  scenario.name = fmt::format("{}-tp{}-pp{}-dp{}", run.model.empty() ? "plan" : run.model,
                              run.tensor, run.pipeline, run.data);
  scenario.model = shape_of(run);
  scenario.cluster = priced(cluster, run).steps.cluster;
  scenario.cluster.name =
      fmt::format("{}, {} devices a rank", cluster.name, run.tensor * run.data * run.context);
  scenario.cluster.device = cluster.device;
  scenario.cluster.device.memory = {};  // a rank is several: the search has held them against it
  plan::Pipeline& pipeline = scenario.pipeline;
  pipeline.ranks = run.pipeline;
  pipeline.microbatches = run.microbatches();
  pipeline.schedule = run.schedule_name();
  pipeline.chunks = run.chunks;
  pipeline.blocking = true;
  const auto layers = static_cast<int>(plan::gpt_model(shape_of(run)).layers.size());
  // The embedding is the first layer; the norm and the head are on the last stage.
  std::vector<int> boundaries = layer_borders(run);
  for (std::size_t stage = 1; stage + 1 < boundaries.size(); ++stage)
    ++boundaries[stage];
  boundaries.back() = layers;
  pipeline.partition = std::move(boundaries);
  scenario.training.microbatch_size = run.microbatch;
  scenario.data = {.kind = "text", .path = "text.txt"};
  return scenario;
}

plan::LayerCosts layer_costs_of(const plan::Cluster& cluster, const FoundPlan& found) {
  const TrainingRun& run = found.run;
  const PricedRun known = priced(cluster, run);
  plan::LayerCosts costs;
  costs.device = cluster.device.name;
  costs.dtype = "float32";
  costs.software = "analytic";
  costs.microbatch_size = run.microbatch;
  const plan::Model model = plan::gpt_model(shape_of(run));
  const std::vector<int> borders = layer_borders(run);
  std::size_t stage = 0;
  for (std::size_t at = 0; at < model.layers.size(); ++at) {
    plan::LayerCost& layer = costs.layers.emplace_back();
    layer.name = model.layers[at].name;
    layer.output = known.work.hop_size;
    const int block = static_cast<int>(at) - 1;
    const bool is_block = block >= 0 && block < run.layers;
    plan::PassSeconds passes;
    if (at == 0) {
      passes = known.times.embedding;
    } else if (is_block) {
      passes = block < run.dense_layers ? known.times.dense_layer : known.times.layer;
      if (block == borders[stage])
        layer.optimizer_step = known.steps.stages[stage++].optimizer_step;
    } else if (at + 1 == model.layers.size()) {
      passes = known.times.head;
    }
    layer.forward = {passes.forward};
    layer.input_gradient = layer.weight_gradient = {passes.backward / 2};
    layer.parameters = model.layers[at].parameter_bytes;  // those that the scenario's model has
  }
  costs.loss.name = "loss";
  return costs;
}

std::string megatron_arguments(const TrainingRun& run) {
  if (!run.schedule.empty())  // Megatron-LM runs 1F1B, interleaved or not
    return "";
  std::string text = fmt::format(
      "--num-layers {} --hidden-size {} --num-attention-heads {} --seq-length {} "
      "--micro-batch-size {} --global-batch-size {} --tensor-model-parallel-size {} "
      "--pipeline-model-parallel-size {}",
      run.layers, run.hidden, run.heads, run.sequence, run.microbatch, run.global_batch, run.tensor,
      run.pipeline);
  const auto add = [&](bool when, const std::string& words) {
    if (when)
      text += " " + words;
  };
  add(run.feed_forward > 0, fmt::format("--ffn-hidden-size {}", run.feed_forward));
  add(run.kv_heads > 0 && run.kv_heads != run.heads,
      fmt::format("--group-query-attention --num-query-groups {}", run.kv_heads));
  add(run.gated, "--swiglu");
  add(run.stage_layers.empty() && run.chunks > 1,
      fmt::format("--num-layers-per-virtual-pipeline-stage {}", run.layers / run.stages()));
  add(!run.stage_layers.empty(),
      fmt::format("--pipeline-model-parallel-layout '{}'", megatron_layout(run)));
  add(run.context > 1, fmt::format("--context-parallel-size {}", run.context));
  add(run.experts > 0, fmt::format("--num-experts {} --moe-router-topk {} "
                                   "--expert-model-parallel-size {}",
                                   run.experts, run.experts_per_token, run.expert));
  add(run.sequence_parallel, "--sequence-parallel");
  add(run.zero > 0, "--use-distributed-optimizer");
  add(run.recompute == plan::RunRecompute::Selective, "--recompute-activations");
  add(run.recompute == plan::RunRecompute::Full,
      "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1");
  return text;
}

}  // namespace pipewright::sim
