#include "rank_worker.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <stdexcept>
#include <utility>

#include "named_failure.hpp"
#include "pipewright/exec/cpu/core.hpp"
#include "pipewright/exec/device/gpu.hpp"
#include "pipewright/exec/log.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/fused_cell.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/fused_pairs.hpp"
#include "pipewright/plan/program/program_counts.hpp"

namespace pipewright::exec {

using plan::Instruction;
using plan::InstructionKind;

RankWorker::RankWorker(JobRank job_rank, const RankDevice& device, const plan::Program& program,
                       const plan::Partition& partition, const TrainingSetup& setup,
                       const ExecutorOptions& options, Transport& transport, int job_ranks)
    : job_rank_(job_rank),
      trained_(program),
      setup_(setup),
      options_(options),
      transport_(transport),
      compute_(compute_stream(device)),
      progress_(options.starting),
      stopwatch_(job_rank_.in_job(), options.observer, account_,
                 compute_.native().has_value() || meets_others()),
      shards_(job_rank_.in_job(), {job_rank_.of_all_shards(), "shards"}, compute_, transport,
              progress_, stopwatch_),
      experts_(job_rank_.in_job(), {job_rank_.of_all_experts(), "experts"}, compute_, transport,
               progress_, stopwatch_),
      inbox_(job_rank_, device.device, options.dynamic_shapes ? Shapes::Varying : Shapes::Fixed,
             stages_, transport, account_, stopwatch_, progress_),
      collectives_(job_rank_, device.device, program, setup, stages_, transport, account_,
                   stopwatch_),
      reader_(options.read_ahead, beside_rank(job_ranks)),
      scaler_(setup.loss_scaling) {
  if (options.allocations)
    account_.follow([tell = options.allocations, rank = job_rank_.in_job()](
                        const AllocationEvent& event) { tell(rank, event); });
  for (const Stream& stream : {compute_, inbox_.stream(), collectives_.stream()})
    charge_stream(stream, account_.entry());
  const ChargeTo charge(account_);
  const OnStream stream(compute_);
  build_stages(partition);
}

/// Detaches the observer first, because it may already be destroyed when tensors are freed.
RankWorker::~RankWorker() { account_.follow({}); }

/// Returns the rank's place in its tensor-parallel and expert-parallel groups, for its stages.
TensorParallelPlace RankWorker::place() {
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
      if (job_rank_.expert_ranks > 1)
        spec.shard.of_experts = seat_in(collectives_.copies_of_experts(spec.index));
    }
    const int index = spec.index;
    stages_[index] = std::make_unique<Stage>(std::move(spec), setup_);
  }
}

/// Returns the setup of a thread that computes in the background of the rank. It runs on another
/// core if there is one, otherwise on the rank's core while the rank is idle, if possible.
std::function<void()> RankWorker::beside_rank(int job_ranks) const {
  return [this, job_ranks] {
    at::set_num_threads(1);
    interrupt_nobody();
    log_as_rank(job_rank_.in_job());
    if (options_.pin_threads && compute_.device().is_cpu())
      pin_beside(job_rank_.in_job(), job_ranks);
  };
}

/// Queues the reads of this pass, then those of the next pass.
void RankWorker::expect_data() {
  std::vector<Reading> readings;
  for (const Instruction& i : program_->ranks[static_cast<std::size_t>(job_rank_.rank)])
    if (i.kind == InstructionKind::Load)
      readings.push_back(stages_.at(i.stage)->reading(i));
  const std::size_t now = readings.size();
  for (std::size_t at = 0; pass_.continues && at < now; ++at) {
    Reading next = readings[at];
    ++next.step;
    readings.push_back(next);
  }
  reader_.expect(std::move(readings));
}

void RankWorker::run(const plan::Program& program, const Pass& pass, Clock::time_point step_begin) {
  const ChargeTo charge(account_);
  const OnStream stream(compute_);
  log_in_step(pass.step);
  log(LogSubject::Schedule, LogLevel::Info, "begins {}",
      pass.training ? "a step" : "a forward pass");
  program_ = &program;
  pass_ = pass;
  pass_.first_microbatch = job_rank_.replica * program.microbatches;
  pass_.microbatches = job_rank_.replicas * program.microbatches;
  pass_.loss_scale = pass.training ? scaler_.scale() : 1;
  skipped_ = false;
  const auto slots = plan::slot_counts(program);
  for (auto& [index, own] : stages_)
    own->begin(pass_, slots[static_cast<std::size_t>(index)]);
  expect_data();
  stopwatch_.begin(step_begin, pass.observed);
  shards_.begin();
  experts_.begin();
  inbox_.begin(program);
  collectives_.begin(program, pass_);
  const at::AutoGradMode grad_mode(pass.training);
  const auto& list = program.ranks[static_cast<std::size_t>(job_rank_.rank)];
  for (std::size_t at = 0; at < list.size(); ++at) {
    if (stopped())
      throw Aborted("stopped");
    if (!plan::begins_pair(list, at)) {
      named(list[at], [&] { perform(list[at]); });
    } else {
      run_pair(list[at], list[at + 1]);
      ++at;
    }
  }
  progress_.at_end_of_step();
  with_named_failure(
      job_rank_.in_job(), pass_.step, [] { return Progress::end_of_step; }, [&] { end_pass(); });
  if (pass.training)
    scaler_.update(!skipped_);
  log_in_step(pass.step);
  log(LogSubject::Schedule, LogLevel::Info, "ends it{}",
      skipped_ ? ", skipped: a gradient was not finite" : "");
}

/// Ends a pass. This is the only place where a rank waits for its device.
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
  if (pass_.observed) {
    shards_.learn_waits();
    experts_.learn_waits();
  }
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

template <class Work>
void RankWorker::named(const Instruction& i, const Work& work) const {
  with_named_failure(
      job_rank_.in_job(), pass_.step, [&] { return in_words(i); }, work);
}

/// Waits for the inputs of an action.
void RankWorker::await_input(const Instruction& i) {
  collectives_.wait_before(i);
  if (plan::receive_for(i.kind))
    inbox_.fetch(i);
}

/// Runs an action whose inputs have arrived.
void RankWorker::compute(const Instruction& i) {
  if (!options_.run_action)
    return compute_as_it_is(i);
  bool has_run = false;
  options_.run_action({job_rank_.in_job(), pass_.step, i, [&] {
                         if (std::exchange(has_run, true))
                           throw std::logic_error("the function for actions runs it twice");
                         compute_as_it_is(i);
                       }});
  if (!has_run)
    throw std::logic_error("the function for actions has not run it");
}

void RankWorker::compute_as_it_is(const Instruction& i) {
  stages_.at(i.stage)->compute(i);
  if (i.kind == InstructionKind::Forward || plan::makes_input_gradient(i.kind))
    inbox_.pass_within_rank(i);
}

void RankWorker::perform(const Instruction& i) {
  Stage* const own = stages_.at(i.stage).get();
  switch (i.kind) {
    case InstructionKind::Load:
      return timed(i, [&] { own->load(i, reader_.take(own->reading(i))); });
    case InstructionKind::Forward:
    case InstructionKind::Recompute:
    case InstructionKind::Backward:
    case InstructionKind::InputGradient:
    case InstructionKind::WeightGradient:
      await_input(i);
      return timed(i, [&] { compute(i); });
    case InstructionKind::SendActivation:
      return timed(i, [&] { inbox_.send(i, own->outputs_for_next(i)); });
    case InstructionKind::SendGradient:
      return timed(i, [&] { inbox_.send(i, own->take_input_gradients(i)); });
    case InstructionKind::ReceiveActivation:
    case InstructionKind::ReceiveGradient:
      inbox_.post(i);
      if (program_->blocking)
        inbox_.complete(i);
      return;
    case InstructionKind::OptimizerStep:
      progress_.starting(i);
      collectives_.drain();  // waiting for gradients does not count as the step's time
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
      return timed(i, [&] { own->free_parameters(); });
  }
}

/// Returns true if taking turns hides communication, and neither action changes what the other one
/// reads. On a GPU a backward runs in the stream of its forward, so the two would not overlap.
bool RankWorker::takes_turns(const Instruction& first, const Instruction& second) const {
  if (!meets_others() || compute_.native())
    return false;
  const StageSpec& own = stages_.at(first.stage)->spec();
  const auto recomputes = [](const auto& backward) { return backward.second.recomputed; };
  return first.stage != second.stage ||
         (own.step_every == 0 && std::ranges::none_of(own.backwards, recomputes));
}

void RankWorker::run_pair(const Instruction& first, const Instruction& second) {
  if (options_.run_pair)
    return run_own_pair(first, second);
  if (!takes_turns(first, second)) {
    named(first, [&] { perform(first); });
    return named(second, [&] { perform(second); });
  }
  for (const Instruction* const i : {&first, &second})
    named(*i, [&] { await_input(*i); });
  run_in_turns(first, second);
}

/// Runs two actions in turns. Prefers to report the failure that made the other strand abort.
void RankWorker::run_in_turns(const Instruction& first, const Instruction& second) {
  Baton baton;
  const RankShards::InTurns among_shards(shards_, baton), among_experts(experts_, baton);
  progress_.starting(first, second);
  account_.reset_peak();
  std::array<TimestampedRecord, 2> records;
  const auto strand = [&](int which, const Instruction& i) {
    named(i, [&] {
      baton.run(which, [&] {
        const Timestamp begin = stopwatch_.now();
        const auto held_before = account_.held();
        compute(i);
        records[static_cast<std::size_t>(which)] = stopwatch_.ended(i, begin, held_before, which);
      });
    });
  };
  second_.submit([&, here = at::ThreadLocalState()] {
    const at::ThreadLocalStateGuard as_here(here);
    const ChargeTo charge(account_);
    strand(1, second);
  });
  std::exception_ptr consequence;
  try {
    strand(0, first);
  } catch (const Aborted&) {
    consequence = std::current_exception();
  } catch (...) {
    second_.finish();
    throw;
  }
  second_.drain();
  if (consequence)
    std::rethrow_exception(consequence);
  for (const TimestampedRecord& record : records)
    stopwatch_.tell_in_time(record);
}

void RankWorker::run_own_pair(const Instruction& first, const Instruction& second) {
  for (const Instruction* const i : {&first, &second})
    named(*i, [&] { await_input(*i); });
  std::array<bool, 2> has_run{};
  const auto begin = [&](int which, const Instruction& i) {
    if (std::exchange(has_run[static_cast<std::size_t>(which)], true))
      throw std::logic_error(
          fmt::format("the function for fused pairs runs {} twice", to_string(i)));
  };
  const auto alone = [&](int which, const Instruction& i) {
    begin(which, i);
    named(i, [&] { timed(i, [&] { compute(i); }); });
  };
  const auto both = [&] {
    begin(0, first);
    begin(1, second);
    if (takes_turns(first, second))
      return run_in_turns(first, second);
    for (const Instruction* const i : {&first, &second})
      named(*i, [&] { timed(*i, [&] { compute(*i); }); });
  };
  const auto name = [&] {
    return "action " + plan::fused_cell(to_string(first), to_string(second));
  };
  with_named_failure(job_rank_.in_job(), pass_.step, name, [&] {
    options_.run_pair({job_rank_.in_job(), pass_.step, first, second, [&] { alone(0, first); },
                       [&] { alone(1, second); }, both});
    for (const int which : {0, 1})
      if (!has_run[static_cast<std::size_t>(which)])
        throw std::logic_error(fmt::format("the function for fused pairs has not run {}",
                                           to_string(which == 0 ? first : second)));
  });
}

void RankWorker::optimizer_step(const Instruction& i) {
  Stage& own = *stages_.at(i.stage);
  collectives_.finish_gradients(own);
  own.update(i, learning_rate_at(setup_.optimizer, pass_.step), collectives_.use());
}

Heartbeat RankWorker::beat() const { return progress_.beat(job_rank_); }

bool RankWorker::stopped() const {
  return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
}

}  // namespace pipewright::exec
