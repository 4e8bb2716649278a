#include "checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "pipewright/exec/stage/gradient_norm.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/gradient_groups.hpp"
#include "pipewright/plan/program/validate_program.hpp"

namespace pipewright::exec {
namespace {

using plan::InstructionKind;

std::set<int> stages_with(const plan::Program& program, InstructionKind kind) {
  std::set<int> stages;
  for (const auto& instructions : program.ranks)
    for (const plan::Instruction& i : instructions)
      if (i.kind == kind)
        stages.insert(i.stage);
  return stages;
}

/// Returns true if all ranks of these stages sum tied weights.
bool reduces_tied_of(const plan::Program& program, const std::set<int>& stages) {
  for (const int stage : stages)
    for (const int rank : program.placement.ranks_of(stage)) {
      const auto& own = program.ranks[static_cast<std::size_t>(rank)];
      if (std::none_of(own.begin(), own.end(), [](const plan::Instruction& i) {
            return i.kind == InstructionKind::ReduceTied;
          }))
        return false;
    }
  return true;
}

/// Rejects tied weights if each data-parallel replica has only its shard of the gradients, because
/// no rank has the whole gradient of a tied weight then.
void check_scattered(const plan::Program& program, const std::vector<LayerSpec>& layers) {
  if (!plan::scatters_microbatches(program))
    return;
  for (const LayerSpec& layer : layers)
    if (!layer.tied_key.empty())
      throw plan::InputError(fmt::format(
          "layer {} shares the weight '{}', whose whole gradients must be summed, but the program "
          "reduce-scatters gradients among replicas. Lower the schedule with ZeRO stage 1",
          layer.name, layer.tied_key));
}

/// Checks that layers that share a weight lie on one stage, or on stages whose gradients the
/// Program sums.
void check_tied(const plan::Program& program, const plan::Partition& partition,
                const std::vector<LayerSpec>& layers) {
  for (const auto& [key, stages] : stages_of_keys(layers, partition.boundaries))
    if (stages.size() > 1 && !reduces_tied_of(program, stages))
      throw plan::InputError(
          fmt::format("stages {} share the weight '{}', but the program does not sum its gradients "
                      "on all of them. Lower the schedule with these tied stages",
                      fmt::join(stages, ", "), key));
}

/// Checks that the Program shares the losses if ranks are processes, which have no other way to
/// learn them.
void check_loss(const plan::Program& program, const ExecutorOptions& options) {
  if (options.only_rank && stages_with(program, InstructionKind::ShareLoss).empty())
    throw plan::InputError(
        "the ranks are processes, but the program does not share the loss. Lower the schedule with "
        "a shared loss");
}

void check_copies(const plan::Program& program, const ExecutorOptions& options) {
  if (options.replicas < 1)
    throw plan::InputError(fmt::format(
        "{} replicas of the pipeline were requested, but at least 1 is needed", options.replicas));
  auto reduced = stages_with(program, InstructionKind::ReduceGradients);
  auto scattered = stages_with(program, InstructionKind::ScatterGradients);
  scattered.merge(stages_with(program, InstructionKind::ScatterMicrobatch));
  auto gathered = stages_with(program, InstructionKind::GatherParameters);
  // Stages whose parameters are gathered before each use need no gather after the step.
  gathered.merge(stages_with(program, InstructionKind::Unshard));
  for (const int stage : scattered)
    if (!gathered.contains(stage))
      throw plan::InputError(
          fmt::format("the program reduce-scatters the gradients of stage {}, but does not gather "
                      "its parameters after the step. Lower the schedule with a sharded optimizer",
                      stage));
  reduced.insert(scattered.begin(), scattered.end());
  for (int stage = 0; stage < plan::stage_count(program); ++stage)
    if ((options.replicas > 1 || program.placement.ranks_of(stage).size() > 1) &&
        !reduced.contains(stage))
      throw plan::InputError(
          fmt::format("stage {} has several replicas, but the program does not sum their "
                      "gradients. Lower the schedule with {} replicas",
                      stage, options.replicas));
  const int ranks = grid_of(program, options).size();
  if (!options.devices.empty() && static_cast<int>(options.devices.size()) != ranks)
    throw plan::InputError(
        fmt::format("{} devices were given for a job of {} ranks. Give none, or one for each rank",
                    options.devices.size(), ranks));
  if (options.only_rank && (*options.only_rank < 0 || *options.only_rank >= ranks))
    throw plan::InputError(fmt::format("there is no rank {}: the ranks of the job are 0 to {}",
                                       *options.only_rank, ranks - 1));
  if (options.only_rank && !options.transport)
    throw plan::InputError("a process with one rank needs a transport to the others");
  check_loss(program, options);
}

/// Checks the layers and settings against tensor parallelism.
void check_shards(const TrainingSetup& setup, const ExecutorOptions& options) {
  if (options.shards < 1)
    throw plan::InputError(fmt::format(
        "{} tensor-parallel ranks were requested, but at least 1 is needed", options.shards));
  if (setup.tensor_groups > 0 && setup.tensor_groups % options.shards != 0)
    throw plan::InputError(fmt::format(
        "training.tensor_groups is {}, but must be a multiple of the {} tensor-parallel ranks",
        setup.tensor_groups, options.shards));
  if (options.shards == 1)
    return;
  if (options.cuda_graphs)
    throw plan::InputError(
        "training.cuda_graphs: tensor-parallel ranks communicate within an action, which cannot be "
        "one launch. Leave it out, or use one tensor-parallel rank");
  for (const LayerSpec& layer : setup.layers)
    if (layer.random && layer.build_shard)
      throw plan::InputError(fmt::format(
          "layer {} is random, and only one random layer runs at a time, but its tensor-parallel "
          "ranks wait for each other while they run. Use one tensor-parallel rank",
          layer.name));
}

void require_for_experts(bool holds, const char* why) {
  if (!holds)
    throw plan::InputError(fmt::format("pipeline.expert: {}", why));
}

/// Checks the layers and settings against expert parallelism.
void check_experts(const TrainingSetup& setup, const ExecutorOptions& options) {
  if (options.expert_ranks == 1)
    return;
  require_for_experts(std::any_of(setup.layers.begin(), setup.layers.end(),
                                  [](const LayerSpec& layer) { return layer.has_experts; }),
                      "experts cannot be divided among ranks, because no layer has any");
}

void check_norm(const plan::Program& program, const TrainingSetup& setup) {
  if (!needs_norm(setup))
    return;
  if (stages_with(program, InstructionKind::NormGradients).empty())
    throw plan::InputError(
        "gradients are clipped or scaled, but the program does not compute their norm. Lower the "
        "schedule with a gradient norm");
}

}  // namespace

void require_trainable(const plan::Program& program, int expert_ranks) {
  if (plan::is_forward_only(program))
    throw plan::InputError("the program computes no gradients: there is nothing to train");
  if (expert_ranks == 1)
    return;
  require_for_experts(!program.asynchronous,
                      "without a flush only one pipeline trains, so experts cannot be divided "
                      "among pipelines. Use a schedule with a flush");
}

std::vector<int> gradient_groups(const plan::Program& program, const TrainingSetup& setup,
                                 int replicas) {
  if (setup.exact && setup.gradient_groups > 0)
    plan::require_whole_groups(program, replicas, setup.gradient_groups);
  return plan::gradient_groups(program, replicas, setup.gradient_groups);
}

/// Rejects settings that a schedule without a flush cannot have, because no two ranks ever have the
/// same version of their weights.
void check_asynchronous(const plan::Program& program, const TrainingSetup& setup,
                        const ExecutorOptions& options) {
  if (!program.asynchronous)
    return;
  if (needs_norm(setup))
    throw plan::InputError(
        "the program steps its optimizers without a flush, so gradients cannot be clipped or "
        "scaled over all stages");
  if (options.replicas > 1 || setup.precision != at::kFloat)
    throw plan::InputError(
        "the program steps its optimizers without a flush, which the executor supports only with "
        "one pipeline and in float32");
}

/// Rejects programs that cannot be captured: a CUDA graph reads and writes memory at fixed
/// addresses.
void check_capturable(const plan::Program& program, const ExecutorOptions& options) {
  if (!options.cuda_graphs)
    return;
  if (program.asynchronous)
    throw plan::InputError(
        "training.cuda_graphs: the program steps its optimizers without a flush and so keeps "
        "several versions of the weights, but a graph uses one. Leave it out");
  if (plan::scatters_microbatches(program) || plan::gathers_parameters(program))
    throw plan::InputError(
        "training.cuda_graphs: ZeRO stages 2 and 3 free a microbatch's gradients once they are "
        "summed, but a graph writes them to fixed memory. Leave it out, or use ZeRO stage 1");
  if (options.dynamic_shapes)
    throw plan::InputError(
        "training.cuda_graphs: microbatches may differ in size (`dynamic_shapes`), but a graph has "
        "one size. Leave one of them out");
}

void check(const plan::Program& program, const plan::Partition& partition,
           const TrainingSetup& setup, const ExecutorOptions& options) {
  plan::validate(program);
  require_trainable(program, options.expert_ranks);
  if (plan::layer_count(partition) != static_cast<int>(setup.layers.size()))
    throw plan::InputError(fmt::format("the partition {} is for {} layers, but the model has {}",
                                       plan::to_string(partition.boundaries),
                                       plan::layer_count(partition), setup.layers.size()));
  if (plan::stage_count(partition) != plan::stage_count(program))
    throw plan::InputError(fmt::format("the partition {} has {} stages, but the program {}",
                                       plan::to_string(partition.boundaries),
                                       plan::stage_count(partition), plan::stage_count(program)));
  check_shards(setup, options);
  check_experts(setup, options);
  check_copies(program, options);
  if (!program.asynchronous)
    check_norm(program, setup);
  check_asynchronous(program, setup, options);
  check_capturable(program, options);
  check_tied(program, partition, setup.layers);
  check_scattered(program, setup.layers);
  gradient_groups(program, setup, options.replicas);
}

void check_evaluation(const plan::Program& program, const plan::Program& trained) {
  plan::validate(program);
  if (!plan::is_forward_only(program))
    throw plan::InputError("an evaluation runs forwards only, but the program has a backward");
  if (plan::stage_count(program) != plan::stage_count(trained) ||
      program.ranks.size() != trained.ranks.size())
    throw plan::InputError(
        fmt::format("the evaluation is for {} stages on {} ranks, but {} stages "
                    "on {} ranks are trained",
                    plan::stage_count(program), program.ranks.size(), plan::stage_count(trained),
                    trained.ranks.size()));
  if (stages_with(program, InstructionKind::Unshard) !=
      stages_with(trained, InstructionKind::Unshard))
    throw plan::InputError(
        "the evaluation and the training gather the parameters of different stages. Lower both "
        "with the same ZeRO stage and number of replicas");
  for (int stage = 0; stage < plan::stage_count(program); ++stage)
    for (const int rank : program.placement.ranks_of(stage))
      if (!trained.placement.holds(rank, stage))
        throw plan::InputError(fmt::format(
            "the evaluation runs stage {} on rank {}, which does not have it", stage, rank));
}

}  // namespace pipewright::exec
