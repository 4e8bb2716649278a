#include "pipewright/engine/engine.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "pipewright/exec/stage/gradient_norm.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/evaluation_program.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "setup_of.hpp"

namespace pipewright::engine {
namespace {

/// Returns the number of microbatches per step in one pipeline.
int microbatches_of(const PipelineModule& module, const EngineOptions& options, int samples) {
  if (options.microbatch_size < 1)
    throw plan::InputError(
        fmt::format("microbatch_size is {}, but must be at least 1", options.microbatch_size));
  const int unit = options.microbatch_size * module.replicas();
  if (samples >= unit && samples % unit == 0)
    return samples / unit;
  const int below = samples / unit * unit;
  throw plan::InputError(fmt::format(
      "a batch of {} samples does not divide into microbatches of {} in {} pipeline{}: the nearest "
      "{} {}{}",
      samples, options.microbatch_size, module.replicas(), module.replicas() == 1 ? "" : "s",
      below < unit ? "is" : "are", below < unit ? "" : fmt::format("{} and ", below),
      below < unit ? unit : below + unit));
}

/// Returns the stages that share a weight with another stage.
std::vector<int> tied_stages(const PipelineModule& module) {
  std::set<int> tied;
  for (const auto& [key, stages] : exec::stages_of_keys(module.layers(), module.boundaries()))
    if (stages.size() > 1)
      tied.insert(stages.begin(), stages.end());
  return {tied.begin(), tied.end()};
}

plan::Program training_program(const PipelineModule& module, const EngineOptions& engine,
                               const exec::TrainingSetup& setup, int microbatches) {
  const std::string schedule = engine.schedule.label();
  plan::ScheduleRequest request;
  request.name = engine.schedule.name;
  request.own = engine.schedule.own;
  request.group = engine.schedule_group;
  request.ranks = module.pipeline_ranks();
  request.microbatches = microbatches;
  // 0: the schedule's minimum.
  request.chunks = module.options().stages_per_rank > 1 ? module.options().stages_per_rank : 0;
  if (const int stages = plan::stage_count(request); stages != module.stage_count())
    throw plan::InputError(fmt::format(
        "schedule {} has {} stages on {} ranks, but the module has {}: set stages_per_rank to {}",
        schedule, stages, request.ranks, module.stage_count(), stages / request.ranks));
  auto options = plan::lowering_of(request);
  options.replicas = module.replicas();
  options.tied_stages = tied_stages(module);
  options.zero = engine.zero;
  options.gradient_norm = exec::needs_norm(setup);
  options.share_loss = true;
  if (const int layers = module.options().checkpoint_interval; layers > 0) {
    options.recompute = plan::RecomputeMode::Full;
    options.recompute_layers = layers;
  }
  return plan::lower(request, plan::make_training_schedule(request), options);
}

exec::DataNeeds needs_of(const PipelineModule& module, const plan::Program& program,
                         const exec::ExecutorOptions& options) {
  exec::DataNeeds needs{.keywords = std::any_of(
                            module.layers().begin(), module.layers().end(),
                            [](const exec::LayerSpec& layer) { return !layer.keywords.empty(); })};
  if (!options.only_rank)
    return needs;
  const exec::JobRank own = exec::grid_of(program, options).rank(*options.only_rank);
  needs.inputs = program.placement.holds(own.rank, 0);
  needs.targets = program.placement.holds(own.rank, plan::stage_count(program) - 1);
  needs.part = own.replica;
  needs.parts = own.replicas;
  return needs;
}

bool ends_a_backward(const plan::Instruction& i) { return plan::makes_weight_gradient(i.kind); }

/// Counts the backwards of a step on the ranks of this process.
int count_backwards(const plan::Program& program, const exec::ExecutorOptions& options) {
  int count = 0;
  const exec::JobGrid grid = exec::grid_of(program, options);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    if (!options.only_rank || grid.rank(*options.only_rank).rank == static_cast<int>(rank))
      count += static_cast<int>(
          std::count_if(program.ranks[rank].begin(), program.ranks[rank].end(), ends_a_backward));
  return options.only_rank ? count : count * options.replicas * options.shards;
}

exec::TrainingSetup setup_of_engine(const PipelineModule& module, const EngineOptions& options) {
  exec::TrainingSetup setup = setup_of(module, options);
  setup.microbatch_size = options.microbatch_size;
  setup.before_step = options.before_step;
  setup.tensor_groups = options.tensor_groups > 0 ? options.tensor_groups : module.shards();
  return setup;
}

}  // namespace

PipelineEngine::PipelineEngine(PipelineModule module, EngineOptions options)
    : module_(std::move(module)),
      options_(std::move(options)),
      setup_(setup_of_engine(module_, options_)),
      step_(options_.first_step) {
  options_.execution.replicas = module_.replicas();
  options_.execution.shards = module_.shards();
  options_.execution.axes = module_.options().topology.axes();
  program_ = training_program(module_, options_, setup_,
                              microbatches_of(module_, options_, options_.train_batch_size));
  needs_ = needs_of(module_, program_, options_.execution);
  buffer_ = exec::StepBuffer(needs_, options_.loss);
  setup_.data = &buffer_;
  executor_ = make_executor(program_);
}

PipelineEngine::~PipelineEngine() = default;

std::unique_ptr<exec::Executor> PipelineEngine::make_executor(const plan::Program& program) {
  exec::ExecutorOptions execution = options_.execution;
  execution.observer =
      [this, heard = options_.execution.observer](const exec::InstructionRecord& record) {
        if (ends_a_backward(record.instruction))
          --backwards_left_;
        if (heard)
          heard(record);
      };
  return std::make_unique<exec::Executor>(program, plan::Partition{module_.boundaries()}, setup_,
                                          std::move(execution));
}

void PipelineEngine::set_data(exec::BatchSource source) {
  source_ = std::move(source);
  buffer_.follow(nullptr);
}

void PipelineEngine::set_data(std::shared_ptr<const exec::Dataset> data) {
  source_ = {};
  buffer_.follow(std::move(data));
}

void PipelineEngine::set_batch_function(std::function<exec::Batch(exec::Batch)> function) {
  batch_function_ = std::move(function);
}

/// Reads a batch of all pipelines. Returns false if the data of any process has ended.
bool PipelineEngine::fill(exec::StepBuffer& buffer, exec::BatchSource& data,
                          int microbatches) const {
  if (!batch_function_ || !data)
    return all_agree(buffer.fill(data, step_, microbatches));
  exec::BatchSource changed = [&]() -> std::optional<exec::Batch> {
    auto batch = data();
    return batch ? batch_function_(std::move(*batch)) : std::optional<exec::Batch>();
  };
  return all_agree(buffer.fill(changed, step_, microbatches));
}

std::optional<exec::StepResult> PipelineEngine::run_step(exec::BatchSource& data, bool outputs) {
  if (!setup_.loss)
    throw plan::InputError("the module has no loss to train by: set PipelineOptions::loss");
  if (!fill(buffer_, data, microbatches() * module_.replicas()))
    return {};
  backwards_left_ = count_backwards(program_, options_.execution);
  auto result = executor_->step(step_, {.outputs = outputs});
  if (result)
    ++step_;
  return result;
}

std::optional<exec::StepResult> PipelineEngine::train_batch() {
  if (!source_ && !buffer_.follows_data() && (needs_.inputs || needs_.targets))
    throw plan::InputError("there is no data to train on: call set_data first");
  leave_out_data();
  auto result = run_step(source_, false);
  if (result)
    microbatches_read_ += microbatches() * module_.replicas();
  return result;
}

std::optional<exec::StepResult> PipelineEngine::train_batch(exec::BatchSource& data) {
  return run_step(data, false);
}

/// Splits the batch. If the batch of one process is invalid, every process throws.
exec::BatchSource PipelineEngine::source_of(const WholeBatch& batch, int microbatches) const {
  std::vector<exec::Batch> parts;
  std::string fault;
  try {
    parts = microbatches_of(batch, microbatches * module_.replicas());
    if (!options_.execution.dynamic_shapes && !are_even(parts))
      fault = fmt::format(
          "the samples of the batch do not divide evenly into {} microbatches: set "
          "`execution.dynamic_shapes`",
          parts.size());
  } catch (const plan::InputError& error) {
    fault = error.what();
  }
  if (!all_agree(fault.empty()))
    throw plan::InputError(fault.empty() ? "the batch of another process cannot be split" : fault);
  return batches_of(std::move(parts));
}

namespace {

/// Merges the outputs of the microbatches that this process has.
exec::Tensors merged_outputs(std::vector<exec::Tensors> by_microbatch,
                             const std::vector<Merge>& merges) {
  std::erase_if(by_microbatch, [](const exec::Tensors& outputs) { return outputs.empty(); });
  return by_microbatch.empty() ? exec::Tensors() : merge_outputs(by_microbatch, merges);
}

}  // namespace

std::optional<BatchStep> PipelineEngine::step(const WholeBatch& batch, const OutputOptions& how) {
  exec::BatchSource source = source_of(batch, microbatches());
  auto result = run_step(source, how.outputs);
  if (!result)
    return {};
  exec::Tensors outputs = merged_outputs(result->outputs, how.merges);
  return BatchStep{std::move(*result), std::move(outputs)};
}

std::optional<BatchEvaluation> PipelineEngine::evaluate(const WholeBatch& batch,
                                                        const EvaluationOptions& how) {
  exec::BatchSource source =
      source_of(batch, how.microbatches > 0 ? how.microbatches : microbatches());
  return eval_batch(source, how);
}

std::optional<BatchEvaluation> PipelineEngine::eval_batch(exec::BatchSource& data,
                                                          const EvaluationOptions& how) {
  if (how.loss && !setup_.loss)
    throw plan::InputError(
        "the module has no loss to evaluate: set PipelineOptions::loss, or `loss` of the "
        "EvaluationOptions to false");
  const int count = how.microbatches > 0 ? how.microbatches : microbatches();
  exec::DataNeeds needs = needs_;
  needs.targets = needs.targets && how.loss;
  exec::StepBuffer buffer(needs);
  if (!fill(buffer, data, count * module_.replicas()))
    return {};
  const auto program =
      plan::evaluation_program(program_, count, module_.replicas(), how.loss && how.share_loss);
  auto evaluation =
      executor_->evaluate(program, buffer, step_, {.outputs = how.outputs, .loss = how.loss});
  if (!evaluation)
    return {};
  BatchEvaluation result;
  if (!evaluation->losses.empty())
    result.loss = evaluation->loss;
  result.losses = std::move(evaluation->losses);
  result.outputs = merged_outputs(std::move(evaluation->outputs), how.merges);
  return result;
}

void PipelineEngine::set_train_batch_size(int samples) {
  auto program =
      training_program(module_, options_, setup_, microbatches_of(module_, options_, samples));
  auto executor = make_executor(program);
  executor->take_over(*executor_);
  program_ = std::move(program);
  executor_ = std::move(executor);
  options_.train_batch_size = samples;
}

/// Returns the group of all processes of this job.
exec::RankGroup PipelineEngine::everybody() const {
  const exec::ExecutorOptions& execution = options_.execution;
  return exec::everybody(exec::grid_of(program_, execution).size(), *execution.only_rank,
                         *execution.transport);
}

/// Returns true if `here` is true on every process.
bool PipelineEngine::all_agree(bool here) const {
  if (!options_.execution.only_rank)
    return here;
  const auto answers = everybody().all_gather({at::full({1}, here, at::kLong)});
  return std::all_of(answers.begin(), answers.end(),
                     [](const exec::Tensors& answer) { return answer.at(0).item<bool>(); });
}

void PipelineEngine::refuse(const char* call) {
  throw plan::InputError(
      fmt::format("a pipeline cannot run {} alone: its schedule interleaves forwards, backwards "
                  "and optimizer steps of several microbatches; call train_batch, eval_batch, "
                  "or step with a batch",
                  call));
}

}  // namespace pipewright::engine
