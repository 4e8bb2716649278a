#include "rank_worker.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <set>

#include "device/gpu.hpp"
#include "named_failure.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/program_counts.hpp"

namespace pipewright::exec {

using plan::Instruction;
using plan::InstructionKind;

RankWorker::RankWorker(JobRank job_rank, const RankDevice& device, const plan::Program& program,
                       const plan::Partition& partition, const TrainingSetup& setup,
                       const ExecutorOptions& options, Transport& transport)
    : job_rank_(job_rank),
      trained_(program),
      setup_(setup),
      options_(options),
      transport_(transport),
      compute_(compute_stream(device)),
      progress_(options.starting),
      stopwatch_(job_rank_.in_job(), options.observer, account_, compute_.native().has_value()),
      shards_(job_rank_.in_job(), {job_rank_.of_all_shards(), "shards"}, compute_, transport,
              progress_, stopwatch_),
      experts_(job_rank_.in_job(), {job_rank_.of_all_experts(), "experts"}, compute_, transport,
               progress_, stopwatch_),
      inbox_(job_rank_, device.device, options.dynamic_shapes ? Shapes::Varying : Shapes::Fixed,
             stages_, transport, account_, stopwatch_, progress_),
      collectives_(job_rank_, device.device, program, setup, stages_, transport, account_,
                   stopwatch_),
      scaler_(setup.loss_scaling) {
  for (const Stream& stream : {compute_, inbox_.stream(), collectives_.stream()})
    charge_stream(stream, account_.entry());
  const ChargeTo charge(account_);
  const OnStream stream(compute_);
  build_stages(partition);
}

/// What a stage is built with.
ShardPlace RankWorker::place() {
  return {.index = job_rank_.shard,
          .count = job_rank_.shards,
          .groups = setup_.tensor_groups,
          .group = job_rank_.shards > 1 ? &shards_ : nullptr,
          .experts = {.index = job_rank_.part_of_experts(),
                      .count = job_rank_.expert_ranks,
                      .group = job_rank_.expert_ranks > 1 ? &experts_ : nullptr}};
}

void RankWorker::build_stages(const plan::Partition& partition) {
  std::set<int> sharded;
  for (const Instruction& i : trained_.ranks[static_cast<std::size_t>(job_rank_.rank)])
    if (i.kind == InstructionKind::GatherParameters || i.kind == InstructionKind::Unshard)
      sharded.insert(i.stage);
  const auto groups = gradient_groups(trained_, setup_, job_rank_.replicas);
  for (StageSpec& spec : stage_specs(trained_, partition, job_rank_, groups)) {
    spec.device = compute_.device();
    spec.captures = options_.cuda_graphs;
    spec.dynamic_shapes = options_.dynamic_shapes;
    spec.account = account_.entry();
    spec.place = place();
    if (sharded.contains(spec.index)) {
      const Members copies = collectives_.copies_of(spec.index);
      spec.shard.index = copies.index();
      spec.shard.count = static_cast<int>(copies.ranks.size());
      spec.shard.parameters = spec.shard.parameters && spec.shard.count > 1;
    }
    const int index = spec.index;
    stages_[index] = std::make_unique<Stage>(std::move(spec), setup_);
  }
}

void RankWorker::run(const plan::Program& program, const Pass& pass, Clock::time_point step_begin) {
  const ChargeTo charge(account_);
  const OnStream stream(compute_);
  program_ = &program;
  pass_ = pass;
  pass_.first_microbatch = job_rank_.replica * program.microbatches;
  pass_.microbatches = job_rank_.replicas * program.microbatches;
  pass_.loss_scale = pass.training ? scaler_.scale() : 1;
  skipped_ = false;
  const auto slots = plan::slot_counts(program);
  for (auto& [index, own] : stages_)
    own->begin(pass_, slots[static_cast<std::size_t>(index)]);
  stopwatch_.begin(step_begin, pass.observed);
  inbox_.begin(program);
  collectives_.begin(program, pass_);
  const at::AutoGradMode grad_mode(pass.training);
  for (const Instruction& i : program.ranks[static_cast<std::size_t>(job_rank_.rank)]) {
    if (stopped())
      throw Aborted("stopped");
    with_named_failure(
        job_rank_.in_job(), pass_.step, [&] { return in_words(i); }, [&] { perform(i); });
  }
  progress_.at_end_of_step();
  with_named_failure(
      job_rank_.in_job(), pass_.step, [] { return Progress::end_of_step; }, [&] { end_pass(); });
  if (pass.training)
    scaler_.update(!skipped_);
}

/// The one place where a rank waits for its device.
void RankWorker::end_pass() {
  collectives_.drain();
  for (const Stream& own : {inbox_.stream(), collectives_.stream(), compute_})
    transport_.wait_for_device([&] { return own.is_done(); }, Progress::end_of_step);
  transport_.require_going();
  const at::Tensor& norm = collectives_.scaled_norm();
  gradient_norm_ = norm.defined() ? norm.item<double>() / scaler_.scale() : 0;
  skipped_ = !std::isfinite(gradient_norm_);
  for (auto& [index, own] : stages_)
    own->end();
  stopwatch_.tell_late();
}

template <class Work>
void RankWorker::timed(const Instruction& i, const Work& work) {
  progress_.starting(i);
  noted(i, work);
}

template <class Work>
void RankWorker::noted(const Instruction& i, const Work& work) {
  const Timestamp begin = stopwatch_.now();
  const auto held_before = account_.held();
  account_.reset_peak();
  work();
  stopwatch_.note(i, begin, held_before);
}

void RankWorker::perform(const Instruction& i) {
  Stage* const own = stages_.at(i.stage).get();
  if (plan::traits_of(i.kind).action)
    collectives_.wait_before(i);
  switch (i.kind) {
    case InstructionKind::Load:
      return timed(i, [&] { own->load(i); });
    case InstructionKind::Forward:
      inbox_.fetch(i);
      return timed(i, [&] {
        own->forward(i);
        inbox_.pass_within_rank(i);
      });
    case InstructionKind::Recompute:
      return timed(i, [&] { own->recompute(i); });
    case InstructionKind::Backward:
      inbox_.fetch(i);
      return timed(i, [&] {
        own->backward(i);
        inbox_.pass_within_rank(i);
      });
    case InstructionKind::InputGradient:
      inbox_.fetch(i);
      return timed(i, [&] {
        own->input_gradient(i);
        inbox_.pass_within_rank(i);
      });
    case InstructionKind::WeightGradient:
      return timed(i, [&] { own->weight_gradient(i); });
    case InstructionKind::SendActivation:
      return timed(i, [&] { transport_.send(inbox_.transfer_of(i), own->outputs_for_next(i)); });
    case InstructionKind::SendGradient:
      return timed(i,
                   [&] { transport_.send(inbox_.transfer_of(i), own->take_input_gradients(i)); });
    case InstructionKind::ReceiveActivation:
    case InstructionKind::ReceiveGradient:
      inbox_.post(i);
      if (program_->blocking)
        inbox_.complete(i);
      return;
    case InstructionKind::OptimizerStep:
      progress_.starting(i);
      collectives_.drain();  // to wait for gradients is not to step
      return noted(i, [&] { optimizer_step(i); });
    case InstructionKind::ScatterMicrobatch:
    case InstructionKind::ReduceTied:
    case InstructionKind::ReduceGradients:
    case InstructionKind::ScatterGradients:
    case InstructionKind::NormGradients:
    case InstructionKind::GatherParameters:
    case InstructionKind::ShareLoss:
    case InstructionKind::Unshard:
      return collectives_.submit(i);
    case InstructionKind::Reshard:
      collectives_.wait_before(i);
      return timed(i, [&] {
        if (own->spec().shard.parameters)
          own->let_go();
      });
  }
}

void RankWorker::optimizer_step(const Instruction& i) {
  Stage& own = *stages_.at(i.stage);
  collectives_.finish_gradients(own);
  own.update(i, learning_rate_at(setup_.optimizer, pass_.step), collectives_.use());
}

Beat RankWorker::beat() const { return progress_.beat(job_rank_); }

bool RankWorker::stopped() const {
  return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
}

}  // namespace pipewright::exec
