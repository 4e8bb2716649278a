#include "pipewright/exec/engine/engine.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/evaluation_program.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "stage/gradient_norm.hpp"

namespace pipewright::exec {
namespace {

/// Microbatches of a step in one pipeline.
int microbatches_of(const PipelineModule& module, const EngineOptions& options, int samples) {
  if (options.microbatch_size < 1)
    throw plan::InputError(
        fmt::format("microbatch_size is {}, the least is 1", options.microbatch_size));
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

/// Stages that share a weight with another one.
std::vector<int> tied_stages(const PipelineModule& module) {
  std::map<std::string, std::set<int>> stages_of_key;
  for (const PipelineStage& stage : module.stages())
    for (int layer = stage.first_layer; layer < stage.end_layer; ++layer)
      if (const auto& key = module.layers()[static_cast<std::size_t>(layer)].tied_key; !key.empty())
        stages_of_key[key].insert(stage.index);
  std::set<int> tied;
  for (const auto& [key, stages] : stages_of_key)
    if (stages.size() > 1)
      tied.insert(stages.begin(), stages.end());
  return {tied.begin(), tied.end()};
}

plan::Program training_program(const PipelineModule& module, const EngineOptions& engine,
                               const TrainingSetup& setup, int microbatches) {
  const std::string schedule = engine.schedule.label();
  plan::ScheduleRequest request;
  request.name = engine.schedule.name;
  request.own = engine.schedule.own;
  request.group = engine.schedule_group;
  request.ranks = module.pipeline_ranks();
  request.microbatches = microbatches;
  // None said: as few chunks as the schedule can have.
  request.chunks = module.options().stages_per_rank > 1 ? module.options().stages_per_rank : 0;
  if (const int stages = plan::stage_count(request); stages != module.stage_count())
    throw plan::InputError(fmt::format(
        "schedule {} has {} stages on {} ranks, but the module has {}: set stages_per_rank to {}",
        schedule, stages, request.ranks, module.stage_count(), stages / request.ranks));
  auto options = plan::lowering_of(request);
  options.replicas = module.replicas();
  options.tied_stages = tied_stages(module);
  options.zero = engine.zero;
  options.gradient_norm = needs_norm(setup);
  options.share_loss = true;
  if (const int layers = module.options().checkpoint_interval; layers > 0) {
    options.recompute = plan::RecomputeMode::Full;
    options.recompute_layers = layers;
  }
  return plan::lower(request, plan::make_training_schedule(request), options);
}

DataNeeds needs_of(const plan::Program& program, const ExecutorOptions& options) {
  if (!options.only_rank)
    return {};
  const JobRank own = grid_of(program, options).rank(*options.only_rank);
  return {.inputs = program.placement.holds(own.rank, 0),
          .targets = program.placement.holds(own.rank, plan::stage_count(program) - 1),
          .part = own.replica,
          .parts = own.replicas};
}

bool ends_a_backward(const plan::Instruction& i) { return plan::makes_weight_gradient(i.kind); }

/// Backwards of a step on the ranks of this process.
int count_backwards(const plan::Program& program, const ExecutorOptions& options) {
  int count = 0;
  const JobGrid grid = grid_of(program, options);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    if (!options.only_rank || grid.rank(*options.only_rank).rank == static_cast<int>(rank))
      count += static_cast<int>(
          std::count_if(program.ranks[rank].begin(), program.ranks[rank].end(), ends_a_backward));
  return options.only_rank ? count : count * options.replicas * options.shards;
}

TrainingSetup setup_of(const PipelineModule& module, const EngineOptions& options) {
  TrainingSetup setup;
  setup.layers = module.layers();
  setup.loss = module.options().loss;
  setup.base_seed = module.options().base_seed;
  setup.microbatch_size = options.microbatch_size;
  setup.optimizer = options.optimizer;
  setup.precision = options.precision;
  setup.loss_scaling = options.loss_scaling;
  setup.clip_norm = options.clip_norm;
  setup.exact = options.exact;
  setup.gradient_groups = options.gradient_groups;
  setup.tensor_groups = options.tensor_groups > 0 ? options.tensor_groups : module.shards();
  return setup;
}

}  // namespace

PipelineEngine::PipelineEngine(PipelineModule module, EngineOptions options)
    : module_(std::move(module)),
      options_(std::move(options)),
      setup_(setup_of(module_, options_)),
      step_(options_.first_step) {
  options_.execution.replicas = module_.replicas();
  options_.execution.shards = module_.shards();
  options_.execution.axes = module_.options().topology.axes();
  program_ = training_program(module_, options_, setup_,
                              microbatches_of(module_, options_, options_.train_batch_size));
  needs_ = needs_of(program_, options_.execution);
  buffer_ = StepBuffer(needs_);
  setup_.data = &buffer_;
  executor_ = make_executor(program_);
}

PipelineEngine::~PipelineEngine() = default;

std::unique_ptr<Executor> PipelineEngine::make_executor(const plan::Program& program) {
  ExecutorOptions execution = options_.execution;
  execution.observer = [this,
                        heard = options_.execution.observer](const InstructionRecord& record) {
    if (ends_a_backward(record.instruction))
      --backwards_left_;
    if (heard)
      heard(record);
  };
  return std::make_unique<Executor>(program, plan::Partition{module_.boundaries()}, setup_,
                                    std::move(execution));
}

void PipelineEngine::set_data(BatchSource source) { source_ = std::move(source); }

std::optional<StepResult> PipelineEngine::train_batch() {
  if (!source_ && (needs_.inputs || needs_.targets))
    throw plan::InputError("there is no data to train on: call set_data first");
  if (!all_agree(buffer_.fill(source_, step_, microbatches() * module_.replicas())))
    return {};
  backwards_left_ = count_backwards(program_, options_.execution);
  const auto result = executor_->step(step_);
  if (result)
    ++step_;
  return result;
}

std::optional<BatchEvaluation> PipelineEngine::eval_batch(BatchSource& data,
                                                          const EvaluationOptions& how) {
  const int count = how.microbatches > 0 ? how.microbatches : microbatches();
  StepBuffer buffer(needs_);
  if (!all_agree(buffer.fill(data, step_, count * module_.replicas())))
    return {};
  const auto program = plan::evaluation_program(program_, count, module_.replicas());
  auto evaluation = executor_->evaluate(program, buffer, step_, how.outputs);
  if (!evaluation)
    return {};
  // The outputs of other processes' microbatches are not here.
  std::erase_if(evaluation->outputs, [](const Tensors& outputs) { return outputs.empty(); });
  BatchEvaluation result{evaluation->loss};
  if (!evaluation->outputs.empty())
    result.outputs = merge_outputs(evaluation->outputs, how.merges);
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

/// Whether `here` holds on every process.
bool PipelineEngine::all_agree(bool here) const {
  const ExecutorOptions& execution = options_.execution;
  if (!execution.only_rank)
    return here;
  std::vector<int> everybody(static_cast<std::size_t>(grid_of(program_, execution).size()));
  std::iota(everybody.begin(), everybody.end(), 0);
  const auto answers = execution.transport->all_gather(everybody, *execution.only_rank,
                                                       {at::full({1}, here, at::kLong)});
  return std::all_of(answers.begin(), answers.end(),
                     [](const Tensors& answer) { return answer.at(0).item<bool>(); });
}

void PipelineEngine::refuse(const char* call) {
  throw plan::InputError(
      fmt::format("a pipeline cannot run {} by itself: its schedule runs forwards, backwards and "
                  "optimizer steps of several microbatches in turn; call train_batch or eval_batch",
                  call));
}

}  // namespace pipewright::exec
