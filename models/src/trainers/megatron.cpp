// Megatron-LM's arguments (megatron/training/arguments.py): a transformer's sizes and parallelism.
// It runs 1F1B, interleaved if a rank has several stages, and reduces gradients after the last
// microbatch.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/models/transformer/stage_layers.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalogue.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"
#include "pipewright/plan/partitioners/layout.hpp"
#include "trainers/trainer.hpp"

namespace pipewright::models::trainer {
namespace {

class Arguments {
 public:
  void add(const std::string& word) { words_.push_back(word); }
  void add_if(bool when, const std::string& word) {
    if (when)
      add(word);
  }
  void add(const std::string& option, int value) { add(fmt::format("{} {}", option, value)); }
  std::string text() const { return fmt::format("{}", fmt::join(words_, " ")); }

 private:
  std::vector<std::string> words_;
};

/// Returns the layers that have experts: "([0]*3+[1]*58)".
std::string layer_frequency(const plan::TransformerConfig& config) {
  std::vector<std::string> runs;
  for (int layer = 0; layer < config.layers;) {
    const bool sparse = config.has_experts(layer);
    int end = layer;
    while (end < config.layers && config.has_experts(end) == sparse)
      ++end;
    runs.push_back(fmt::format("[{}]*{}", sparse ? 1 : 0, end - layer));
    layer = end;
  }
  return fmt::format("'({})'", fmt::join(runs, "+"));
}

void add_attention(Arguments& arguments, const plan::TransformerConfig& config) {
  if (config.is_latent()) {
    arguments.add("--multi-latent-attention");
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

void add_experts(Arguments& arguments, const plan::TransformerConfig& config) {
  arguments.add("--num-experts", config.experts);
  arguments.add("--moe-router-topk", config.experts_per_token);
  arguments.add("--moe-ffn-hidden-size", config.expert_feed_forward);
  if (config.shared_feed_forward > 0)
    arguments.add("--moe-shared-expert-intermediate-size", config.shared_feed_forward);
  arguments.add_if(config.router_bias, "--moe-router-enable-expert-bias");
  arguments.add("--moe-layer-freq " + layer_frequency(config));
}

void add_model(Arguments& arguments, const plan::TransformerConfig& config) {
  arguments.add("--num-layers", config.layers);
  arguments.add("--hidden-size", config.hidden);
  arguments.add("--num-attention-heads", config.heads);
  add_attention(arguments, config);
  arguments.add("--ffn-hidden-size", config.feed_forward);
  arguments.add_if(config.gated, "--swiglu");
  if (config.has_mixture())
    add_experts(arguments, config);
  arguments.add("--vocab-size", config.vocabulary);
  arguments.add("--make-vocab-size-divisible-by", config.vocabulary_multiple);
  arguments.add_if(config.norm == plan::NormKind::Root, "--normalization RMSNorm");
  arguments.add_if(!config.learned_positions, "--position-embedding-type rope");
  arguments.add_if(!config.tied, "--untie-embeddings-and-output-weights");
  arguments.add_if(!config.projection_bias, "--disable-bias-linear");
  arguments.add_if(!config.projection_bias && config.query_bias, "--add-qkv-bias");
  arguments.add_if(!config.dropout, "--attention-dropout 0 --hidden-dropout 0");
  if (config.predictions > 0)
    arguments.add("--mtp-num-layers", config.predictions);
}

void add_sizes(Arguments& arguments, const plan::Scenario& scenario,
               const plan::TransformerShape& shape) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  add_model(arguments, shape.config);
  arguments.add("--seq-length", shape.sequence);
  arguments.add("--max-position-embeddings", std::max(shape.config.longest, shape.sequence));
  arguments.add_if(shape.attention == plan::AttentionKind::Scores, "--attention-backend unfused");
  arguments.add("--micro-batch-size", scenario.training.microbatch_size);
  arguments.add("--global-batch-size",
                scenario.training.microbatch_size * pipeline.microbatches * pipeline.replicas);
}

void add_stages(Arguments& arguments, const plan::Scenario& scenario) {
  const plan::Layout layout = layout_of(model_of(scenario), borders_of(scenario));
  const std::vector<int> layers = transformer_layers(layout);
  const int ranks = scenario.pipeline.ranks;
  const int stages = static_cast<int>(layers.size());
  arguments.add("--pipeline-model-parallel-size", ranks);
  // By default, Megatron gives all stages the same number of layers, with the embedding and the
  // loss on the first and last.
  const bool all_equal = std::ranges::adjacent_find(layers, std::not_equal_to{}) == layers.end();
  if (!all_equal)
    arguments.add(fmt::format("--pipeline-model-parallel-layout '{}'", to_string(layout)));
  else if (stages > ranks)
    arguments.add("--num-layers-per-virtual-pipeline-stage", layers.front());
  if (scenario.pipeline.group > 0)
    arguments.add("--microbatch-group-size-per-virtual-pipeline-stage", scenario.pipeline.group);
}

void add_shards(Arguments& arguments, const plan::Scenario& scenario,
                const plan::TransformerConfig& config) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  arguments.add("--tensor-model-parallel-size", pipeline.tensor);
  arguments.add_if(pipeline.sequence_parallel, "--sequence-parallel");
  if (pipeline.context > 1)
    arguments.add("--context-parallel-size", pipeline.context);
  if (config.has_mixture())
    arguments.add("--expert-model-parallel-size", pipeline.expert);
  arguments.add_if(scenario.training.zero > 0, "--use-distributed-optimizer");
  arguments.add_if(pipeline.overlap_reductions && pipeline.replicas > 1, "--overlap-grad-reduce");
  const plan::RecomputeMode recompute = scenario.training.recompute;
  arguments.add_if(recompute == plan::RecomputeMode::Selective, "--recompute-activations");
  arguments.add_if(recompute == plan::RecomputeMode::Full,
                   "--recompute-granularity full --recompute-method uniform "
                   "--recompute-num-layers 1");
}

void add_training(Arguments& arguments, const plan::Training& training,
                  plan::ProductPrecision products) {
  arguments.add_if(products == plan::ProductPrecision::Float8,
                   "--fp8-format hybrid --fp8-param-gather");
  arguments.add_if(products == plan::ProductPrecision::Float4, "--fp4-format e2m1");
  arguments.add_if(training.precision == plan::Precision::Mixed, "--bf16");
  arguments.add_if(training.precision == plan::Precision::MixedHalf, "--fp16");
  arguments.add(
      fmt::format("--optimizer {}", training.optimizer == plan::Optimizer::AdamW ? "adam" : "sgd"));
  arguments.add_if(
      training.optimizer != plan::Optimizer::AdamW,
      fmt::format("--sgd-momentum {}",
                  training.optimizer == plan::Optimizer::SgdMomentum ? plan::sgd_momentum : 0.0));
  arguments.add(fmt::format("--lr {}", training.learning_rate));
  arguments.add(fmt::format("--weight-decay {}", training.weight_decay));
  arguments.add(fmt::format("--clip-grad {}", training.clip_norm));
}

std::string megatron_text(const plan::Scenario& scenario) {
  const auto& shape = scenario.model.as<plan::TransformerShape>();
  Arguments arguments;
  add_sizes(arguments, scenario, shape);
  add_stages(arguments, scenario);
  add_shards(arguments, scenario, shape.config);
  add_training(arguments, scenario.training, shape.products);
  return arguments.text() + "\n";
}

/// Returns a difference if Megatron's arguments, which only give sizes, would build another model.
std::optional<std::string> other_sizes(const plan::TransformerShape& shape) {
  Arguments arguments;
  add_model(arguments, shape.config);
  arguments.add("--seq-length", shape.sequence);
  arguments.add("--max-position-embeddings", std::max(shape.config.longest, shape.sequence));
  plan::TransformerTraining told;
  try {
    told = transformer_from_megatron(arguments.text(), "megatron.txt").training;
  } catch (const plan::InputError& error) {
    return error.what();
  }
  const plan::Model model = model_of(plan::ModelShape(shape)),
                    theirs = model_of(plan::ModelShape(shape_of(told)));
  for (std::size_t l = 0; l < model.layers.size() && l < theirs.layers.size(); ++l)
    if (model.layers[l].parameters != theirs.layers[l].parameters)
      return fmt::format("layer {} would have {} parameters instead of {}", model.layers[l].name,
                         theirs.layers[l].parameters, model.layers[l].parameters);
  return {};
}

std::vector<std::string> untold_megatron(const plan::Scenario& scenario) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const plan::ScheduleDescriptor& schedule = descriptor_of(pipeline.schedule);
  UnsupportedFields unsupported_fields;
  add_common(unsupported_fields, scenario);
  const auto* const shape = scenario.model.find<plan::TransformerShape>();
  unsupported_fields.add_if(shape == nullptr,
                            fmt::format("model.kind={}: its arguments describe only a {}",
                                        scenario.model.kind(), plan::TransformerShape::kind));
  if (shape != nullptr)
    if (const auto fault = other_sizes(*shape))
      unsupported_fields.add_if(true, "model: " + *fault);
  unsupported_fields.add_if(
      !schedule.runs_in_megatron,
      fmt::format("pipeline.schedule={}: it runs {}", pipeline.schedule.name,
                  plan::listed_schedules(&plan::ScheduleDescriptor::runs_in_megatron)));
  const bool is_interleaved = schedule.runs_in_megatron && schedule.chunks != plan::Chunks::One;
  unsupported_fields.add_if(
      is_interleaved && pipeline.group == 0 && pipeline.microbatches % pipeline.ranks != 0,
      fmt::format("pipeline.microbatches={}: interleaved stages need a multiple of {}",
                  pipeline.microbatches, pipeline.ranks));
  unsupported_fields.add_if(
      scenario.training.zero > 1,
      fmt::format("training.zero={}: its distributed optimizer is ZeRO 1", scenario.training.zero));
  return unsupported_fields.lines();
}

std::vector<std::string> megatron_assignments(std::string_view text, const std::string& name,
                                              int replicas) {
  const DescribedTransformer told = transformer_from_megatron(text, name);
  const plan::Cut& cut = told.cut;
  const int pipelines_batch = cut.microbatch * replicas;
  if (told.training.batch % pipelines_batch != 0)
    throw plan::InputError(fmt::format(
        "{}: --global-batch-size {} is not a multiple of --micro-batch-size {} in {} pipelines "
        "(pipeline.replicas)",
        name, told.training.batch, cut.microbatch, replicas));
  // Rounds with another size than one microbatch per rank exist only in Megatron's own schedule.
  const bool has_group = cut.group > 0 && cut.chunks > 1;
  std::vector<std::string> assignments{
      assignment("pipeline.ranks", cut.pipeline),
      assignment("pipeline.chunks", cut.chunks),
      assignment("pipeline.schedule", schedule_name(cut)),
      assignment("pipeline.partition", boundaries_of(cut, told.training.model.layers)),
      assignment("pipeline.microbatches", told.training.batch / pipelines_batch),
      assignment("pipeline.replicas", replicas),
      assignment("pipeline.tensor", cut.tensor),
      assignment("pipeline.sequence_parallel", cut.sequence_parallel),
      assignment("pipeline.context", cut.context),
      assignment("pipeline.expert", cut.expert),
      assignment("training.microbatch_size", cut.microbatch),
      assignment("training.zero", cut.zero),
      assignment("training.recompute", to_string(cut.recompute))};
  if (has_group)
    assignments.push_back(assignment("pipeline.group", cut.group));
  return assignments;
}

}  // namespace

const Words& megatron() {
  static constexpr Words words{
      untold_megatron, megatron_text,
      [](std::string_view text, const std::string& name, const CutContext& context) {
        return megatron_assignments(text, name, context.replicas);
      }};
  return words;
}

}  // namespace pipewright::models::trainer
