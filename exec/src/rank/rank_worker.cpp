#include "rank_worker.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "first_line.hpp"
#include "gpu/gpu.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/program_counts.hpp"

namespace pipewright::exec {

using plan::Instruction;
using plan::InstructionKind;

namespace {

/// The receive that would bring what `i` needs, if a rank border lies before it.
Instruction receive_for(const Instruction& i) {
  const auto kind = i.kind == InstructionKind::Forward ? InstructionKind::ReceiveActivation
                                                       : InstructionKind::ReceiveGradient;
  return {kind, i.stage, i.microbatch, i.slot};
}

bool takes_input(InstructionKind kind) {
  return kind == InstructionKind::Forward || plan::makes_input_gradient(kind);
}

}  // namespace

RankWorker::RankWorker(GridPlace place, const RankDevice& device, const plan::Program& program,
                       const plan::Partition& partition, const TrainingSetup& setup,
                       const ExecutorOptions& options, Transport& transport)
    : place_(place),
      trained_(program),
      setup_(setup),
      options_(options),
      transport_(transport),
      compute_(compute_lane(device)),
      incoming_(Lane::of(device.device, /*urgent=*/true)),
      reducing_(Lane::of(device.device, /*urgent=*/false)),
      scaler_(setup.loss_scaling) {
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (const Instruction& i : program.ranks[rank]) {
      reduces_copies_ = reduces_copies_ || i.kind == InstructionKind::ReduceGradients;
      if (i.kind != InstructionKind::ReduceTied)
        continue;
      if (tied_ranks_.empty() || tied_ranks_.back() != static_cast<int>(rank))
        tied_ranks_.push_back(static_cast<int>(rank));
      if (static_cast<int>(rank) != place_.rank)
        continue;
      last_tied_stage_ = i.stage;
      tied_stages_.insert(i.stage);
    }
  for (const Lane* lane : {&compute_, &incoming_, &reducing_})
    charge_lane(*lane, account_.entry());
  const ChargeTo charge(account_);
  const OnLane lane(compute_);
  build_stages(partition);
}

void RankWorker::build_stages(const plan::Partition& partition) {
  std::set<int> split;
  for (const Instruction& i : trained_.ranks[static_cast<std::size_t>(place_.rank)]) {
    if (i.kind == InstructionKind::Recompute)
      recomputed_.emplace(i.stage, i.microbatch);
    if (i.kind == InstructionKind::InputGradient)
      split.insert(i.stage);
  }
  const auto groups = gradient_groups(trained_, setup_, place_.replicas);
  for (int index = 0; index < plan::stage_count(trained_); ++index) {
    if (!trained_.placement.holds(place_.rank, index))
      continue;
    const auto at = static_cast<std::size_t>(index);
    Stage::Place place{index, partition.boundaries[at], partition.boundaries[at + 1]};
    place.device = compute_.device();
    place.splits_backward = split.contains(index);
    place.step_every = step_every();
    for (int m = 0; m < trained_.microbatches; ++m)
      if (lives_here(index, m)) {
        const int microbatch = place_.replica * trained_.microbatches + m;
        place.microbatches[groups[static_cast<std::size_t>(microbatch)]].push_back(microbatch);
      }
    const Members copies = members(trained_.placement.ranks_of(index), true);
    if (options_.shard_optimizer)
      place.shard = {copies.index(), static_cast<int>(copies.ranks.size())};
    stages_[index] = std::make_unique<Stage>(std::move(place), setup_);
  }
}

void RankWorker::run(const plan::Program& program, const Pass& pass, Clock::time_point step_begin) {
  const ChargeTo charge(account_);
  const OnLane lane(compute_);
  program_ = &program;
  pass_ = pass;
  pass_.first_microbatch = place_.replica * program.microbatches;
  pass_.microbatches = place_.replicas * program.microbatches;
  pass_.loss_scale = pass.training ? scaler_.scale() : 1;
  begin_ = moment();
  begin_in_step_ = {std::chrono::duration<double>(begin_.host - step_begin).count()};
  posted_.clear();
  handed_over_.clear();
  late_.clear();
  looked_at_gradients_ = skipped_ = false;
  scaled_norm_.reset();
  const auto slots = plan::slot_counts(program);
  for (auto& [index, own] : stages_)
    own->begin(pass_, slots[static_cast<std::size_t>(index)]);
  expect_transfers();
  const at::AutoGradMode grad_mode(pass.training);
  for (const Instruction& i : program.ranks[static_cast<std::size_t>(place_.rank)]) {
    if (stopped())
      throw Aborted("stopped");
    named([&] { return "action " + to_string(i); }, [&] { run_one(i); });
  }
  named([] { return end_of_step; }, [&] { finish_device(); });
  at_.store(activity_of(end_of_step), std::memory_order_relaxed);
  if (pass.training)
    scaler_.update(!skipped_);
}

/// Says of what throws which rank it was, and at what: `name()`.
template <class Name, class Work>
void RankWorker::named(const Name& name, const Work& work) const {
  try {
    work();
  } catch (const Aborted&) {
    throw;
  } catch (const std::exception& error) {
    throw RankFailure(fmt::format("rank {}, {}, step {}: {}", place_.self(), name(), pass_.step,
                                  first_line(error.what())));
  }
}

/// The one place where a rank waits for its device.
void RankWorker::finish_device() {
  for (const Lane* own : {&incoming_, &reducing_, &compute_})
    own->finish();
  transport_.require_going();
  gradient_norm_ = scaled_norm_.defined() ? scaled_norm_.item<double>() / scaler_.scale() : 0;
  skipped_ = !std::isfinite(gradient_norm_);
  for (auto& [index, own] : stages_)
    own->end();
  for (const Noted& noted : late_)
    tell(noted);
  late_.clear();
}

void RankWorker::expect_transfers() {
  std::vector<Transfer> transfers;
  for (const Instruction& i : program_->ranks[static_cast<std::size_t>(place_.rank)])
    if (plan::is_receive(i.kind) || plan::is_send(i.kind))
      transfers.push_back(transfer_of(i));
  transport_.expect(place_.self(), transfers);
}

void RankWorker::run_one(const Instruction& i) {
  if (plan::is_receive(i.kind)) {
    post(i);
    if (program_->blocking)
      complete(i);
    return;
  }
  if (plan::is_reduce(i.kind))
    return reduce(i);
  if (takes_input(i.kind))
    fetch_input(i);
  say_starting(i);
  const Moment begin = moment();
  const auto held_before = account_.held();
  account_.reset_peak();
  perform(i);
  note(i, begin, held_before);
}

void RankWorker::perform(const Instruction& i) {
  Stage& own = stage(i.stage);
  switch (i.kind) {
    case InstructionKind::Load:
      own.load(i);
      break;
    case InstructionKind::Forward:
      own.forward(i, pass_.training && recomputed_.contains({i.stage, i.microbatch}));
      hand_on(i);
      break;
    case InstructionKind::Recompute:
      own.recompute(i);
      break;
    case InstructionKind::Backward:
      own.backward(i);
      hand_on(i);
      break;
    case InstructionKind::InputGradient:
      own.input_gradient(i);
      hand_on(i);
      break;
    case InstructionKind::WeightGradient:
      own.weight_gradient(i);
      break;
    case InstructionKind::SendActivation:
      transport_.send(transfer_of(i), own.outputs_for_next(i));
      break;
    case InstructionKind::SendGradient:
      transport_.send(transfer_of(i), own.take_input_gradients(i));
      break;
    case InstructionKind::OptimizerStep:
      optimizer_step(own);
      break;
    case InstructionKind::ReduceTied:
    case InstructionKind::ReduceGradients:
    case InstructionKind::Unshard:
    case InstructionKind::Reshard:
    case InstructionKind::ReceiveActivation:
    case InstructionKind::ReceiveGradient:
      break;  // done by `reduce`; refused at the start; done by `post`
  }
}

void RankWorker::post(const Instruction& receive) {
  const OnLane lane(incoming_);
  posted_[key_of(receive)] = moment();
  transport_.post(transfer_of(receive));
}

/// Waits for the data of a posted receive and lays it where its action looks for it. On a GPU it
/// comes in beside the compute, which waits for it there.
void RankWorker::complete(const Instruction& receive) {
  say_starting(receive);
  Tensors tensors;
  Mark there;
  {
    const OnLane lane(incoming_);
    const Transfer transfer = transfer_of(receive);
    waits_for_.store(transfer.from, std::memory_order_relaxed);
    tensors = transport_.receive(transfer);
    waits_for_.store(-1, std::memory_order_relaxed);
    there = Mark::now();
    note(receive, posted_.extract(key_of(receive)).mapped(), account_.held());
  }
  lay_down(receive, adopt(std::move(tensors), there));
}

void RankWorker::lay_down(const Instruction& receive, Tensors tensors) {
  if (receive.kind == InstructionKind::ReceiveActivation)
    stage(receive.stage).receive_inputs(receive, std::move(tensors));
  else
    stage(receive.stage).buffers(receive).output_gradients = std::move(tensors);
}

void RankWorker::fetch_input(const Instruction& i) {
  const Instruction receive = receive_for(i);
  if (posted_.contains(key_of(receive)))
    return complete(receive);
  const auto local = handed_over_.find(key_of(receive));
  if (local == handed_over_.end())
    return;
  lay_down(receive, std::move(local->second));
  handed_over_.erase(local);
}

/// Stages of one rank hand over without a transfer.
void RankWorker::hand_on(const Instruction& i) {
  const bool forward = i.kind == InstructionKind::Forward;
  const int next = forward ? i.stage + 1 : i.stage - 1;
  if (next < 0 || next >= plan::stage_count(*program_) || !lives_here(next, i.microbatch))
    return;
  const auto kind = forward ? InstructionKind::ReceiveActivation : InstructionKind::ReceiveGradient;
  handed_over_[{kind, next, i.microbatch}] =
      forward ? stage(i.stage).outputs_for_next(i) : stage(i.stage).take_input_gradients(i);
}

/// Starts a reduction and goes on: other ranks may need what this one does next.
void RankWorker::reduce(const Instruction& i) {
  reductions_.submit([this, &i, computed = Mark::now()] {
    const ChargeTo charge(account_);
    const OnLane lane(reducing_);
    computed.wait();
    const Moment begin = moment();
    const auto held_before = account_.held();
    reduce_now(i);
    if (options_.observer)
      reduced_.push_back({record_of(i, held_before), begin, moment()});
    reductions_done_ = Mark::now();
  });
}

/// Tied weights are summed over layers first and over copies then, so copies of stages with tied
/// weights wait for the last of these stages.
void RankWorker::reduce_now(const Instruction& i) {
  if (i.kind == InstructionKind::ReduceTied) {
    if (i.stage == last_tied_stage_)
      reduce_tied_weights();
  } else if (!tied_stages_.contains(i.stage)) {
    reduce_tied_within({&stage(i.stage)});
    reduce_copies_of(i.stage);
  } else if (i.stage == last_tied_stage_) {
    for (const int tied : tied_stages_)
      reduce_copies_of(tied);
  }
}

void RankWorker::reduce_copies_of(int index) {
  // A sharded optimizer needs its shard alone, but a norm is taken of whole tensors.
  const bool whole = !options_.shard_optimizer || needs_norm(setup_);
  reduce_copies(stage(index), members(program_->placement.ranks_of(index), true),
                whole ? SumOf::Whole : SumOf::Shard);
}

void RankWorker::drain_reductions() {
  reductions_.drain();
  std::exchange(reductions_done_, {}).wait();
  for (const Noted& noted : reduced_)
    tell_in_time(noted);
  reduced_.clear();
}

/// All stages of this rank that hold tied weights take part at once, in the last of their
/// instructions: the ranks of the group may hold different numbers of them.
void RankWorker::reduce_tied_weights() {
  std::vector<Stage*> own;
  for (auto& [index, held] : stages_)
    own.push_back(held.get());
  reduce_tied(own, setup_, members(tied_ranks_, false));
}

/// Where the Program sums no tied weights, layers that share one lie on one stage.
void RankWorker::reduce_tied_within(const std::vector<Stage*>& stages) {
  if (tied_ranks_.empty())
    reduce_tied(stages, setup_, {{place_.self()}, place_.self(), &transport_});
}

/// How many microbatches each optimizer step of an asynchronous Program is for.
int RankWorker::step_every() const {
  if (!trained_.asynchronous)
    return 0;
  const auto& instructions = trained_.ranks[static_cast<std::size_t>(place_.rank)];
  const auto count = [&](const auto& is_one) {
    return static_cast<int>(std::count_if(instructions.begin(), instructions.end(), is_one));
  };
  const int steps =
      count([](const Instruction& i) { return i.kind == InstructionKind::OptimizerStep; });
  return count([](const Instruction& i) { return plan::makes_weight_gradient(i.kind); }) / steps;
}

void RankWorker::optimizer_step(Stage& own) {
  if (trained_.asynchronous) {
    own.gradients().finish();
    return own.update(learning_rate_at(setup_.optimizer, pass_.step), {});
  }
  if (!looked_at_gradients_)
    look_at_gradients();
  own.update(learning_rate_at(setup_.optimizer, pass_.step), gradient_use_);
  if (own.place().shard.count > 1)
    gather_shards(own, members(trained_.placement.ranks_of(own.place().index), true));
}

/// Before the first update of a step: gradients are whole, and what all ranks must know of them is
/// gathered.
void RankWorker::look_at_gradients() {
  looked_at_gradients_ = true;
  drain_reductions();
  for (auto& [index, held] : stages_) {
    if (!reduces_copies_)
      reduce_tied_within({held.get()});
    held->gradients().finish();
  }
  gradient_use_ = {};
  if (!needs_norm(setup_))
    return;
  GradientNorm norm;
  for (auto& [index, held] : stages_)
    norm.add(*held, setup_);
  std::vector<int> everybody(trained_.ranks.size());
  for (std::size_t rank = 0; rank < everybody.size(); ++rank)
    everybody[rank] = static_cast<int>(rank);
  for (const Tensors& from_other : members(everybody, true).all_gather(norm.to_tensors()))
    norm.add(from_other);
  scaled_norm_ = norm.norm();
  gradient_use_ = use_of_gradients(setup_, scaler_.scale(), scaled_norm_);
}

InstructionRecord RankWorker::record_of(const Instruction& i, plan::Bytes held_before) const {
  return {place_.self(), i, {}, {}, held_before, account_.peak(), account_.held()};
}

void RankWorker::note(const Instruction& i, const Moment& begin, plan::Bytes held_before) {
  if (!options_.observer)
    return;
  tell_in_time({record_of(i, held_before), begin, moment()});
}

/// Now, or where the device has still to come to it at the end of the step.
void RankWorker::tell_in_time(const Noted& noted) {
  if (compute_.stream())
    late_.push_back(noted);
  else
    tell(noted);
}

/// Tells the observer when it was.
void RankWorker::tell(const Noted& noted) const {
  InstructionRecord record = noted.record;
  record.start = begin_in_step_ + noted.begin.since(begin_);
  record.end = begin_in_step_ + noted.end.since(begin_);
  options_.observer(record);
}

void RankWorker::say_starting(const Instruction& i) {
  at_.store(activity_of(i), std::memory_order_relaxed);
  moves_.store(moves_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (options_.starting)
    options_.starting(i);
}

Beat RankWorker::beat() const {
  const auto at = at_.load(std::memory_order_relaxed);
  Beat beat;
  beat.at = activity_text(at);
  beat.in_action = is_action(at);
  beat.moves = moves_.load(std::memory_order_relaxed);
  if (const int other = waits_for_.load(std::memory_order_relaxed); other >= 0)
    beat.waits.push_back({{other}, beat.at});
  if (beat.in_action)
    return beat;
  Wait& others = beat.waits.emplace_back(Wait{{}, beat.at});
  for (int rank = 0; rank < static_cast<int>(trained_.ranks.size()) * place_.replicas; ++rank)
    others.ranks.push_back(rank);
  return beat;
}

bool RankWorker::stopped() const {
  return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
}

bool RankWorker::lives_here(int stage, int microbatch) const {
  return (program_ == nullptr ? trained_ : *program_).placement.rank_of(stage, microbatch) ==
         place_.rank;
}

Transfer RankWorker::transfer_of(const Instruction& i) const {
  const int peer = place_.of(plan::peer_rank(*program_, i));
  return plan::is_send(i.kind) ? Transfer{i, place_.self(), peer}
                               : Transfer{i, peer, place_.self()};
}

Members RankWorker::members(const std::vector<int>& pipeline_ranks, bool all_replicas) const {
  Members members{{}, place_.self(), &transport_};
  for (const int rank : pipeline_ranks)
    for (int replica = 0; replica < place_.replicas; ++replica)
      if (all_replicas || replica == place_.replica)
        members.ranks.push_back(rank * place_.replicas + replica);
  return members;
}

}  // namespace pipewright::exec
