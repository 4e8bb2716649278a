#include "collectives.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "named_failure.hpp"
#include "pipewright/exec/log.hpp"
#include "pipewright/exec/rank/step_result.hpp"

namespace pipewright::exec {

using plan::Instruction;
using plan::InstructionKind;

void note_known_losses(const plan::Program& program, const JobRank& job_rank, const Stages& stages,
                       std::vector<MicrobatchLoss>& losses) {
  const int last = plan::stage_count(program) - 1;
  const auto holder = stages.find(last);
  if (holder == stages.end())
    return;
  const auto first = static_cast<std::size_t>(job_rank.replica * program.microbatches);
  for (int m = 0; m < program.microbatches; ++m)
    if (program.placement.rank_of(last, m) == job_rank.rank)
      losses[first + static_cast<std::size_t>(m)] =
          holder->second->losses()[static_cast<std::size_t>(m)];
}

Collectives::Collectives(const JobRank& job_rank, at::Device device, const plan::Program& trained,
                         const TrainingSetup& setup, Stages& stages, Transport& transport,
                         MemoryAccount& account, Stopwatch& stopwatch)
    : job_rank_(job_rank),
      trained_(trained),
      setup_(setup),
      stages_(stages),
      transport_(transport),
      account_(account),
      stopwatch_(stopwatch),
      stream_(Stream::of(device, /*urgent=*/false)) {
  for (std::size_t rank = 0; rank < trained.ranks.size(); ++rank)
    for (const Instruction& i : trained.ranks[rank])
      if (i.kind == InstructionKind::ReduceTied)
        tied_ranks_.push_back(static_cast<int>(rank));
}

void Collectives::begin(const plan::Program& program, const Pass& pass) {
  program_ = &program;
  pass_ = pass;
  ties_summed_.clear();
  finished_.clear();
  scaled_norm_.reset();
  use_ = {};
  losses_.clear();
  scatter_.reset();
  unshards_.clear();
}

void Collectives::submit(const Instruction& i) {
  const bool scatters = i.kind == InstructionKind::ScatterMicrobatch;
  // The task clears this when it runs, since a copy of the function would otherwise keep the
  // gradients alive.
  const auto gradients =
      std::make_shared<Tensors>(scatters ? stages_.at(i.stage)->take_gradients() : Tensors());
  const auto done = std::make_shared<Event>();
  const auto number = beside_.submit([this, &i, gradients, done, computed = Event::now()] {
    const ChargeTo charge(account_);
    const OnStream stream(stream_);
    log_in_step(pass_.step);
    log_at(i);
    log(LogSubject::Collectives, LogLevel::Debug, "begins");
    Tensors own = adopt(std::exchange(*gradients, {}), computed);
    const Timestamp begin = stopwatch_.now();
    const auto held_before = account_.held();
    with_named_failure(
        job_rank_.in_job(), pass_.step, [&] { return in_words(i); },
        [&] { perform(i, std::move(own)); });
    stopwatch_.note_beside(i, begin, held_before);
    log(LogSubject::Collectives, LogLevel::Debug, "ends");
    done_ = Event::now();
    *done = Event::now();
  });
  if (scatters)
    scatter_ = {number, done};
  if (i.kind == InstructionKind::Unshard)
    unshards_[i.stage] = {number, done};
}

void Collectives::wait_for(const Submitted& beside) {
  beside_.wait_for(beside.number);
  beside.done->wait();
  stopwatch_.tell_beside();
}

void Collectives::wait_before(const Instruction& action) {
  if (const auto gathered = unshards_.find(action.stage); gathered != unshards_.end()) {
    wait_for(gathered->second);
    adopt(stages_.at(action.stage)->optimizer().parameters(), *gathered->second.done);
    unshards_.erase(gathered);
  }
  if (scatter_ && plan::makes_weight_gradient(action.kind)) {
    wait_for(*scatter_);
    scatter_.reset();
  }
}

void Collectives::drain() {
  beside_.drain();
  std::exchange(done_, {}).wait();
  stopwatch_.tell_beside();
}

void Collectives::perform(const Instruction& i, Tensors gradients) {
  switch (i.kind) {
    case InstructionKind::ScatterMicrobatch:
      return scatter_copies(*stages_.at(i.stage), copies_of(i.stage), copies_of_experts(i.stage),
                            pass_.first_microbatch + i.microbatch, std::move(gradients));
    case InstructionKind::ReduceTied:
      return sum_tied();
    case InstructionKind::ReduceGradients:
    case InstructionKind::ScatterGradients:
      return sum_copies(i.stage,
                        i.kind == InstructionKind::ReduceGradients ? SumOf::Whole : SumOf::Shard);
    case InstructionKind::NormGradients:
      return take_norm();
    case InstructionKind::GatherParameters:
    case InstructionKind::Unshard:
      return gather(i.stage);
    case InstructionKind::ShareLoss:
      return share_loss();
    case InstructionKind::Load:
    case InstructionKind::Forward:
    case InstructionKind::Backward:
    case InstructionKind::InputGradient:
    case InstructionKind::WeightGradient:
    case InstructionKind::Recompute:
    case InstructionKind::SendActivation:
    case InstructionKind::ReceiveActivation:
    case InstructionKind::SendGradient:
    case InstructionKind::ReceiveGradient:
    case InstructionKind::OptimizerStep:
    case InstructionKind::Reshard:
      throw std::logic_error("no collective");
  }
}

/// Sums the gradients of weights that several stages share, over all stages that hold one.
void Collectives::sum_tied() {
  std::vector<Stage*> own;
  for (auto& [index, held] : stages_)
    own.push_back(held.get());
  Members members{{}, job_rank_.in_job(), &transport_};
  for (const int rank : tied_ranks_)
    members.ranks.push_back(job_rank_.of(rank));
  reduce_tied(own, TiesOf::SeveralStages, setup_, members);
}

void Collectives::sum_copies(int index, SumOf wanted) {
  Stage& stage = *stages_.at(index);
  sum_ties_within(stage);
  reduce_copies(stage, copies_of(index), wanted);
  if (job_rank_.expert_ranks > 1)
    reduce_copies(stage, copies_of_experts(index), wanted, CopiesOf::Experts);
}

void Collectives::gather(int index) {
  Stage& stage = *stages_.at(index);
  stage.allocate_parameters();
  gather_shards(stage, copies_of(index));
  if (job_rank_.expert_ranks > 1)
    gather_shards(stage, copies_of_experts(index), CopiesOf::Experts);
}

/// Sums the gradients of weights tied within one stage, for which the Program has no instruction.
void Collectives::sum_ties_within(Stage& stage) {
  if (ties_summed_.insert(stage.spec().index).second)
    reduce_tied({&stage}, TiesOf::OneStage, setup_,
                {{job_rank_.in_job()}, job_rank_.in_job(), &transport_});
}

void Collectives::finish_gradients(Stage& stage) {
  if (!trained_.asynchronous) {
    if (!finished_.insert(stage.spec().index).second)
      return;
    if (!stage.spec().shard.gradients)
      sum_ties_within(stage);
  }
  stage.finish_gradients();
}

void Collectives::take_norm() {
  GradientNorm own, norm;
  for (auto& [index, held] : stages_) {
    finish_gradients(*held);
    own.add(*held, setup_, seat_in(copies_of(index)), seat_in(copies_of_experts(index)));
  }
  for (const Tensors& from_each : everybody().all_gather(own.to_tensors()))
    norm.add(from_each);
  scaled_norm_ = norm.norm();
  use_ = use_of_gradients(setup_, pass_.loss_scale, scaled_norm_);
}

/// Shares the losses among ranks with the same tensor-parallel index; each loss is known to one of
/// them.
void Collectives::share_loss() {
  transport_.wait_for_device([&] { return stream_.is_done(); }, "the losses of a step");
  for (auto& [index, held] : stages_)
    held->read_losses();
  std::vector<MicrobatchLoss> own(static_cast<std::size_t>(pass_.microbatches));
  note_known_losses(*program_, job_rank_, stages_, own);
  losses_ = shared_losses(of_same_shard(), own);
}

Members Collectives::copies_of(int stage) const {
  return {job_rank_.of_all_replicas(trained_.placement.ranks_of(stage)), job_rank_.in_job(),
          &transport_};
}

Members Collectives::copies_of_experts(int stage) const {
  return {job_rank_.of_same_experts(trained_.placement.ranks_of(stage)), job_rank_.in_job(),
          &transport_};
}

Members Collectives::everybody() const {
  return exec::everybody(job_rank_.steps.ranks, job_rank_.in_job(), transport_);
}

Members Collectives::of_same_shard() const {
  return {job_rank_.of_same_shard(), job_rank_.in_job(), &transport_};
}

}  // namespace pipewright::exec
