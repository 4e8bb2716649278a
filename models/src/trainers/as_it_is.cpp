#include "pipewright/models/trainers/as_it_is.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "measured/run_row.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::models {
namespace {

/// Returns Megatron's option for a column of a table.
std::string option_of_column(const std::string& column) {
  static const std::map<std::string, std::string> options{
      {"gpus", "--gpus"},
      {"tp", "--tensor-model-parallel-size"},
      {"pp", "--pipeline-model-parallel-size"},
      {"cp", "--context-parallel-size"},
      {"ep", "--expert-model-parallel-size"},
      {"etp", "--expert-tensor-parallel-size"},
      {"dp", "the number of pipelines (--gpus by the tensor, pipeline and context sizes)"},
      {"micro_batch", "--micro-batch-size"},
      {"global_batch", "--global-batch-size"},
      {"layers", "--num-layers"},
      {"heads", "--num-attention-heads"},
      {"kv_heads", "--num-query-groups"},
      {"chunks", "--num-virtual-stages-per-pipeline-rank"}};
  const auto found = options.find(column);
  return found == options.end() ? column : found->second;
}

/// Returns the sizes as a table has them, with the padded vocabulary.
plan::TransformerTraining training_of(const DescribedTransformer& told) {
  plan::TransformerTraining training = told.training;
  plan::TransformerConfig& model = training.model;
  model.vocabulary =
      padded_vocabulary(model.vocabulary, model.vocabulary_multiple * told.cut.tensor);
  model.vocabulary_multiple = 1;
  training.precision = products_of(told.options.precision).value_or(plan::ProductPrecision::Half);
  training.replays_launches = told.options.cuda_graph == "full";
  training.gathers_float8 = told.options.fp8_parameters;
  training.repeats_bits = told.options.deterministic;
  return training;
}

/// Sets the number of replicas. A pipeline of one rank has no virtual stages.
void share_out(plan::Cut& cut, int gpus) {
  if (cut.pipeline == 1 && cut.stage_layers.empty())
    cut.chunks = 1;
  const int of_copy = cut.tensor * cut.pipeline * cut.context;
  cut.data = std::max(1, gpus / of_copy);
}

std::string faults_in(RunRow& row, const std::string& file) {
  const plan::Cut& cut = row.run.cut;
  const int layers = row.run.training.model.layers;
  if (cut.stage_layers.empty() && layers % cut.stages() != 0)
    return fmt::format(
        "{}: --num-layers {} does not divide evenly among {} stages, and no option gives the "
        "layers of each, such as --pipeline-model-parallel-layout or "
        "--decoder-first-pipeline-num-layers",
        file, layers, cut.stages());
  std::vector<std::string> faults;
  for (const StageFault& wrong : settle_sizes(row, /*tells_head_channels=*/true))
    faults.push_back(fmt::format("{}: {} {}", file, option_of_column(wrong.column), wrong.message));
  return plan::listed_lines(faults);
}

}  // namespace

MeasuredRun run_as_it_is(const DescribedTransformer& told, const std::string& file, int gpus,
                         const std::string& kind) {
  RunRow row;
  row.gpus = gpus;
  MeasuredRun& run = row.run;
  run.training = training_of(told);
  run.cut = told.cut;
  run.options = told.options;
  run.id = run.training.model.name;
  run.tells_recompute = true;
  share_out(run.cut, gpus);
  if (!told.tells_batch)
    run.training.batch = run.cut.microbatch * run.cut.data;
  run.options.padded_vocabulary = run.training.model.vocabulary;
  run.options.device = kind;
  if (const std::string faults = faults_in(row, file); !faults.empty())
    throw plan::InputError(faults);
  return run;
}

}  // namespace pipewright::models
