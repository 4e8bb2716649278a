#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "pipewright/models/measured/megatron_words.hpp"
#include "pipewright/models/transformer/cut_schedule.hpp"
#include "pipewright/models/transformer/pipeline_shape.hpp"
#include "pipewright/models/transformer/transformer_counts.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "run_row.hpp"
#include "schedule_words.hpp"

namespace pipewright::models {
namespace {

/// Returns the divisors of `whole` that are closest to `near`: "4 or 6".
std::string divisors_near(int whole, int near) {
  int below = std::min(near, whole), above = near;
  while (below > 1 && whole % below != 0)
    --below;
  while (above < whole && whole % above != 0)
    ++above;
  if (above > whole || whole % above != 0 || above == below)
    return fmt::format("{}", below);
  return fmt::format("{} or {}", below, above);
}

/// Computes the number of replicas and the batch size from the other counts.
void fill_counts(RunRow& row) {
  plan::Cut& cut = row.run.cut;
  const int of_pipeline = cut.tensor * cut.pipeline * cut.context;
  cut.data = row.data > 0 ? row.data : std::max(1, row.gpus / of_pipeline);
  if (row.run.training.batch == 0 && row.microbatches > 0)
    row.run.training.batch = row.microbatches * cut.microbatch * cut.data;
}

class SizeCheck {
 public:
  explicit SizeCheck(RunRow& row) : row_(row) {}

  std::vector<StageFault> settle(bool tells_head_channels) {
    if (training_.batch == 0)
      return {{"global_batch", "is not given, and microbatches is not either"}};
    const double devices = 1.0 * cut_.tensor * cut_.data * cut_.pipeline * cut_.context;
    if (devices != row_.gpus)
      fault("gpus",
            fmt::format("is {}, but tp {} × dp {} × pp {}{} are {:.0f} devices", row_.gpus,
                        cut_.tensor, cut_.data, cut_.pipeline,
                        cut_.context > 1 ? fmt::format(" × cp {}", cut_.context) : "", devices));
    if (row_.microbatches == 0)  // the batch is that of fewer pipelines
      cut_.data = std::clamp(training_.batch / cut_.microbatch, 1, cut_.data);
    cut_layers();
    divides("heads", model_.heads, "tp", cut_.tensor);
    divides("heads", model_.heads, "kv_heads", model_.kv_heads);
    if (model_.hidden % model_.heads != 0 && !tells_head_channels)
      divides("hidden", model_.hidden, "heads", model_.heads);
    divides("seq", training_.sequence, "cp", cut_.context);
    if (cut_.expert_tensor > 0 && cut_.expert_tensor != cut_.tensor)
      divides("devices of a stage", cut_.devices_of_stage(), "etp", cut_.expert_tensor);
    divides(cut_.expert_cut() == cut_.tensor ? "devices of dp and cp" : "devices of a stage by etp",
            cut_.devices_of_stage() / cut_.expert_cut(), "ep", cut_.expert);
    if (model_.experts > 0)
      divides("experts", model_.experts, "ep", cut_.expert);
    if (training_.batch % cut_.data != 0)
      divides("global_batch", training_.batch, "dp", cut_.data);
    else
      divides("samples of a pipeline", training_.batch / cut_.data, "micro_batch", cut_.microbatch);
    if (!faults_.empty())
      return std::move(faults_);
    check_count();
    check_microbatches();
    check_chunks();
    // In Megatron-LM's interleaving, a round has one microbatch per rank, and the last round has
    // the remaining ones. Other schedules have no rounds.
    const bool interleaves =
        cut_.schedule.empty() || cut_.schedule == plan::default_schedule(cut_.chunks).name ||
        cut_.schedule == plan::default_schedule(cut_.chunks, cut_.pipeline).name;
    if (cut_.chunks > 1 && cut_.group == 0 && interleaves &&
        cut_.microbatches(training_.batch) % cut_.pipeline != 0)
      cut_.group = cut_.pipeline;
    if (cut_.chunks == 1)
      cut_.group = 0;
    if (cut_.group > 0 && cut_.schedule == plan::default_schedule(cut_.chunks).name)
      cut_.schedule = plan::default_schedule(cut_.chunks, cut_.group).name;
    return std::move(faults_);
  }

 private:
  /// Partitions the layers. If they do not divide evenly, the embedding and the head may count as
  /// one layer each, as with Megatron-LM's --account-for-embedding-in-pipeline-split and
  /// --account-for-loss-in-pipeline-split.
  void cut_layers() {
    cut_by_layers_of_stage();
    if (const auto wrong = cut_by_words(row_.stages, model_.layers, cut_))
      return fault(wrong->column, wrong->message);
    if (!cut_.stage_layers.empty())
      return;
    const int stages = cut_.stages(), of_stage = (model_.layers + 2) / stages;
    if (model_.layers % stages != 0 && (model_.layers + 2) % stages == 0 &&
        of_stage > (may_be_bare() ? 0 : 1)) {
      cut_.stage_layers.assign(static_cast<std::size_t>(stages), of_stage);
      --cut_.stage_layers.front();
      --cut_.stage_layers.back();
      return;
    }
    divides("layers", model_.layers, "pp", cut_.pipeline);
    if (cut_.chunks > 1 && model_.layers % cut_.pipeline == 0)
      divides("layers of a rank", model_.layers / cut_.pipeline, "chunks", cut_.chunks);
  }

  /// Returns true if the embedding and the head may each be a stage, as in Zero Bubble's runs with
  /// one layer per stage.
  bool may_be_bare() const { return cut_.chunks > 1 && !cut_.schedule.empty(); }

  /// Derives the virtual stages from the number of layers in each.
  void cut_by_layers_of_stage() {
    const int of_stage = row_.layers_per_virtual_stage;
    if (of_stage == 0 || !row_.stages.layout.empty() || cut_.pipeline == 1)
      return;
    const int all = model_.layers + row_.stages.embedding_counts + row_.stages.loss_counts;
    const int chunks = all / (cut_.pipeline * of_stage);
    if (chunks * cut_.pipeline * of_stage != all)
      return fault(
          "layers_per_virtual_stage",
          fmt::format("is {}, but {} layers are not a multiple of that on each of {} ranks",
                      of_stage, all, cut_.pipeline));
    if (cut_.chunks != 1 && cut_.chunks != chunks)
      fault("layers_per_virtual_stage",
            fmt::format("is {}, so that a rank has {} stages, but chunks is {}", of_stage, chunks,
                        cut_.chunks));
    cut_.chunks = chunks;
  }

  /// Limits the number of passes, because the simulator times every pass of every microbatch.
  void check_count() {
    const double passes = 1.0 * cut_.pipeline * cut_.chunks * cut_.microbatches(training_.batch);
    if (passes > most_timed_passes)
      fault("global_batch", fmt::format("is {}: {} microbatches on {} stages are more than the {} "
                                        "passes that can be timed",
                                        training_.batch, cut_.microbatches(training_.batch),
                                        cut_.pipeline * cut_.chunks, most_timed_passes));
  }

  void check_microbatches() {
    const int own = cut_.microbatches(training_.batch);
    if (row_.microbatches > 0 && row_.microbatches != own)
      fault("microbatches",
            fmt::format("is {}, but global_batch {} of dp {} and micro_batch {} makes {}",
                        row_.microbatches, training_.batch, cut_.data, cut_.microbatch, own));
  }

  void check_chunks() {
    if (cut_.chunks > 1 && cut_.pipeline == 1)
      fault("chunks", fmt::format("is {}, but one stage alone has no chunks", cut_.chunks));
  }

  void divides(const char* what, int whole, const char* column, int part) {
    if (whole % part != 0)
      fault(column, fmt::format("is {}, which does not divide {} {}: {} would", part, what, whole,
                                divisors_near(whole, part)));
  }

  void fault(const std::string& column, const std::string& message) {
    faults_.push_back({column, message});
  }

  RunRow& row_;
  plan::TransformerTraining& training_ = row_.run.training;
  plan::TransformerConfig& model_ = training_.model;
  plan::Cut& cut_ = row_.run.cut;
  std::vector<StageFault> faults_;
};

/// Returns the number of stages per rank if a table does not give it: the schedule's minimum or,
/// for interleaved schedules, one layer per stage, as in Zero Bubble's tables.
int chunks_of(const std::string& schedule, int layers, int ranks) {
  switch (cut_schedule(schedule).chunks) {
    case plan::Chunks::One:
      return 1;
    case plan::Chunks::Two:
    case plan::Chunks::Even:
      return 2;
    case plan::Chunks::Any:
      break;
  }
  const int all = layers % ranks == 0 ? layers : layers + 2;
  return all % ranks == 0 ? std::max(1, all / ranks) : 1;
}

}  // namespace

std::optional<plan::ProductPrecision> products_of(const std::string& precision) {
  if (precision == "bf16" || precision == "fp16")
    return plan::ProductPrecision::Half;
  if (precision == "fp32")
    return plan::ProductPrecision::Single;
  if (precision.find("fp8") != std::string::npos)
    return plan::ProductPrecision::Float8;
  if (precision.find("fp4") != std::string::npos)
    return plan::ProductPrecision::Float4;
  return {};
}

bool is_half(const std::string& type) { return type == "fp16" || type == "bf16"; }

int padded_vocabulary(int vocabulary, int multiple) {
  return (vocabulary + multiple - 1) / multiple * multiple;
}

void set_layers_by_pattern(MeasuredRun& run) {
  plan::TransformerConfig& model = run.training.model;
  const std::string pattern = hybrid_pattern(run.options.arguments, model.layers);
  if (pattern.empty())
    return;
  std::vector<int> stages{0};
  for (const char letter : pattern.substr(0, pattern.find('/')))
    if (letter == '|')
      stages.push_back(0);
    else
      ++stages.back();
  model.layers = std::reduce(stages.begin(), stages.end());
  if (stages.size() == 1)
    return;
  const int count = static_cast<int>(stages.size());
  if (count % run.cut.pipeline != 0)
    throw plan::InputError(
        fmt::format("hybrid-layer-pattern \"{}\" has {} stages, which do not divide among {} ranks",
                    pattern, count, run.cut.pipeline));
  run.cut.chunks = count / run.cut.pipeline;
  run.cut.stage_layers = std::move(stages);
}

std::vector<StageFault> settle_schedule(RunRow& row) {
  fill_counts(row);
  plan::Cut& cut = row.run.cut;
  try {
    const ScheduleWord word = schedule_word(row.schedule);
    row.run.names_schedule = !row.schedule.empty();
    cut.holds_both_ends = !row.overlaps_transfers.value_or(!row.run.names_schedule);
    row.run.tells_recompute |= row.run.names_schedule;
    if (word.recomputes)
      cut.recompute = plan::RecomputeMode::Full;
    if (word.schedule.empty() || cut.pipeline == 1)
      return {};
    cut.schedule = word.schedule;
    if (word.chunks > 0)
      cut.chunks = word.chunks;
    if (cut.chunks == 1 && row.layers_per_virtual_stage == 0 && row.stages.layout.empty())
      cut.chunks = chunks_of(word.schedule, row.run.training.model.layers, cut.pipeline);
  } catch (const plan::InputError& error) {
    return {{"schedule", error.what()}};
  }
  return {};
}

void settle_time(RunRow& row) {
  MeasuredRun& run = row.run;
  if (run.iteration || !row.throughput)
    return;
  const double samples = run.training.batch, devices = run.cut.devices();
  const double tokens = samples * run.training.sequence;
  const auto [unit, value] = *row.throughput;
  using enum Throughput::Unit;
  switch (unit) {
    case Samples:
      run.iteration = plan::Seconds{samples / value};
      break;
    case SamplesOfDevice:
      run.iteration = plan::Seconds{samples / value / devices};
      break;
    case Tokens:
      run.iteration = plan::Seconds{tokens / value};
      break;
    case TokensOfDevice:
      run.iteration = plan::Seconds{tokens / value / devices};
      break;
    case TeraflopsOfDevice:
      run.iteration = plan::Seconds{training_flops(run.training) / (value * 1e12 * devices)};
      break;
    case Utilization:
      run.utilization = value / 100;
      break;
  }
}

std::vector<StageFault> settle_sizes(RunRow& row, bool tells_head_channels) {
  return SizeCheck(row).settle(tells_head_channels);
}

}  // namespace pipewright::models
