// Megatron-LM's arguments (megatron/training/arguments.py): a transformer's sizes and parallelism.
// It runs 1F1B, interleaved if a rank has several stages, and reduces gradients after the last
// microbatch.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/models/transformer/stage_layers.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"
#include "pipewright/plan/partitioners/layout.hpp"
#include "trainers/megatron_model.hpp"
#include "trainers/megatron_model_faults.hpp"
#include "trainers/trainer.hpp"

namespace pipewright::models::trainer {
namespace {

void add_sizes(MegatronText& arguments, const plan::Scenario& scenario,
               const plan::TransformerShape& shape) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  add_model(arguments, shape);
  arguments.add_if(shape.attention == plan::AttentionKind::Scores, "--attention-backend unfused");
  arguments.add("--micro-batch-size", scenario.training.microbatch_size);
  arguments.add("--global-batch-size",
                scenario.training.microbatch_size * pipeline.microbatches * pipeline.replicas);
}

/// Returns the layout, with the modules that predict further tokens (m) before the loss.
plan::Layout megatron_layout(const plan::Scenario& scenario, int predictions) {
  plan::Layout layout = layout_of(model_of(scenario), borders_of(scenario));
  std::string& last = layout.stages.back();
  last.insert(last.size() - 1, static_cast<std::size_t>(predictions), 'm');
  return layout;
}

void add_stages(MegatronText& arguments, const plan::Scenario& scenario, int predictions) {
  const plan::Layout layout = megatron_layout(scenario, predictions);
  const std::vector<int> layers = transformer_layers(layout);
  const int ranks = scenario.pipeline.ranks;
  const int stages = static_cast<int>(layers.size());
  arguments.add("--pipeline-model-parallel-size", ranks);
  // By default, Megatron gives all stages the same number of layers, with the embedding and the
  // loss on the first and last, and the predictions before the loss.
  const bool all_equal = std::ranges::adjacent_find(layers, std::not_equal_to{}) == layers.end();
  if (!all_equal)
    arguments.add(fmt::format("--pipeline-model-parallel-layout '{}'", to_string(layout)));
  else if (stages > ranks)
    arguments.add("--num-layers-per-virtual-pipeline-stage", layers.front());
  if (scenario.pipeline.group > 0)
    arguments.add("--microbatch-group-size-per-virtual-pipeline-stage", scenario.pipeline.group);
}

void add_shards(MegatronText& arguments, const plan::Scenario& scenario,
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

void add_training(MegatronText& arguments, const plan::Training& training,
                  plan::ProductPrecision products) {
  const bool is_float8 = products == plan::ProductPrecision::Float8;
  arguments.add_if(is_float8, "--fp8-format hybrid");
  // Only its distributed optimizer gathers parameters.
  arguments.add_if(is_float8 && training.zero > 0, "--fp8-param-gather");
  arguments.add_if(products == plan::ProductPrecision::Float4, "--fp4-format e2m1");
  arguments.add_if(training.precision == plan::Precision::Mixed, "--bf16");
  arguments.add_if(training.precision == plan::Precision::MixedHalf, "--fp16");
  if (training.loss_scale > 0)
    arguments.add_number("--loss-scale", training.loss_scale);
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
  MegatronText arguments;
  add_sizes(arguments, scenario, shape);
  add_stages(arguments, scenario, shape.config.predictions);
  add_shards(arguments, scenario, shape.config);
  add_training(arguments, scenario.training, shape.products);
  return arguments.text() + "\n";
}

/// Adds the rules of Megatron's TransformerConfig and validate_args that a plan may break.
void add_cut_faults(UnsupportedFields& unsupported_fields, const plan::Scenario& scenario,
                    const plan::TransformerShape& shape) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const plan::TransformerConfig& config = shape.config;
  unsupported_fields.add_if(
      config.has_mixture() && pipeline.tensor > 1 && !pipeline.sequence_parallel,
      "pipeline.sequence_parallel=false: with tensor parallelism, it trains experts only with "
      "sequence parallelism");
  unsupported_fields.add_if(
      config.has_mixture() && pipeline.tensor > 1 && config.feed_forward_bias,
      fmt::format("pipeline.tensor={}: it does not partition experts that have biases",
                  pipeline.tensor));
  unsupported_fields.add_if(
      pipeline.context > 1 && shape.sequence % (2 * pipeline.context) != 0,
      fmt::format("pipeline.context={}: the sequence of {} must be a multiple of {}",
                  pipeline.context, shape.sequence, 2 * pipeline.context));
  const bool has_yarn = config.rotary.scaling == plan::RotaryScaling::Yarn && !config.is_latent();
  unsupported_fields.add_if(
      config.predictions > 0 && (config.learned_positions || has_yarn),
      fmt::format("model.mtp_modules={}: it predicts further tokens only with rotary embeddings "
                  "without YaRN",
                  config.predictions));
}

std::vector<std::string> unsupported_by_megatron(const plan::Scenario& scenario) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const plan::ScheduleDescriptor& schedule = descriptor_of(pipeline.schedule);
  UnsupportedFields unsupported_fields;
  add_common(unsupported_fields, scenario);
  const auto* const shape = scenario.model.find<plan::TransformerShape>();
  unsupported_fields.add_if(shape == nullptr,
                            fmt::format("model.kind={}: its arguments describe only a {}",
                                        scenario.model.kind(), plan::TransformerShape::kind));
  if (shape != nullptr) {
    for (std::string& line : model_faults(*shape))
      unsupported_fields.add_if(true, std::move(line));
    add_cut_faults(unsupported_fields, scenario, *shape);
  }
  unsupported_fields.add_if(
      !schedule.runs_in_megatron,
      fmt::format("pipeline.schedule={}: it runs {}", pipeline.schedule.name,
                  plan::listed_schedules(&plan::ScheduleDescriptor::runs_in_megatron)));
  const bool is_interleaved = schedule.runs_in_megatron && schedule.chunks != plan::Chunks::One;
  unsupported_fields.add_if(is_interleaved && pipeline.ranks == 1,
                            "pipeline.ranks=1: interleaved stages need at least 2 ranks");
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
  const int batch = told.tells_batch ? told.training.batch : pipelines_batch;
  if (batch % pipelines_batch != 0)
    throw plan::InputError(fmt::format(
        "{}: --global-batch-size {} is not a multiple of --micro-batch-size {} in {} pipelines "
        "(pipeline.replicas)",
        name, batch, cut.microbatch, replicas));
  // Rounds with another size than one microbatch per rank exist only in Megatron's own schedule.
  const bool has_group = cut.group > 0 && cut.chunks > 1;
  std::vector<std::string> assignments{
      assignment("pipeline.ranks", cut.pipeline),
      assignment("pipeline.chunks", cut.chunks),
      assignment("pipeline.schedule", schedule_name(cut)),
      assignment("pipeline.partition", boundaries_of(cut, told.training.model.layers)),
      assignment("pipeline.microbatches", batch / pipelines_batch),
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
      unsupported_by_megatron, megatron_text,
      [](std::string_view text, const std::string& name, const CutContext& context) {
        return megatron_assignments(text, name, context.replicas);
      }};
  return words;
}

}  // namespace pipewright::models::trainer
