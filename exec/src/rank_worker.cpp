#include "rank_worker.hpp"

#include <fmt/format.h>

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
  return kind == InstructionKind::Forward || kind == InstructionKind::Backward ||
         kind == InstructionKind::InputGradient;
}

/// LibTorch's messages carry a C++ stack trace after the first line.
std::string first_line(std::string text) { return text.substr(0, text.find('\n')); }

}  // namespace

RankWorker::RankWorker(int rank, const plan::Program& program, const plan::Partition& partition,
                       const TrainingSetup& setup, const ExecutorOptions& options,
                       Transport& transport)
    : rank_(rank), program_(program), options_(options), transport_(transport) {
  const ChargeTo charge(account_);
  const auto slots = plan::slot_counts(program);
  for (std::size_t index = 0; index < static_cast<std::size_t>(stage_count(program)); ++index) {
    if (program.placement.routes.front()[index] != rank)
      continue;
    stages_[static_cast<int>(index)] =
        std::make_unique<Stage>(partition.boundaries[index], partition.boundaries[index + 1],
                                slots[index], program.microbatches, setup);
  }
}

void RankWorker::run(int step, Clock::time_point step_begin) {
  const ChargeTo charge(account_);
  step_begin_ = step_begin;
  posted_.clear();
  for (const Instruction& i : program_.ranks[static_cast<std::size_t>(rank_)]) {
    if (stopped())
      throw Aborted();
    try {
      run_one(i, step);
    } catch (const Aborted&) {
      throw;
    } catch (const std::exception& error) {
      throw RankFailure(fmt::format("rank {}, action {}, step {}: {}", rank_, to_string(i), step,
                                    first_line(error.what())));
    }
  }
}

void RankWorker::run_one(const Instruction& i, int step) {
  if (plan::is_receive(i.kind)) {
    post(i);
    if (program_.blocking)
      complete(i);
    return;
  }
  if (takes_input(i.kind))
    fetch_input(i);
  const auto begin = Clock::now();
  const auto held_before = account_.held();
  account_.reset_peak();
  perform(i, step);
  note(i, begin, held_before);
}

void RankWorker::perform(const Instruction& i, int step) {
  Stage& own = stage(i.stage);
  switch (i.kind) {
    case InstructionKind::Load:
      own.load(i, step);
      break;
    case InstructionKind::Forward:
      own.forward(i, step);
      hand_on(i);
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
      transport_.send(i, own.output_for_next(i));
      break;
    case InstructionKind::SendGradient:
      transport_.send(i, own.take_input_gradient(i));
      break;
    case InstructionKind::OptimizerStep:
      own.optimizer_step();
      break;
    case InstructionKind::Recompute:
    case InstructionKind::ReduceTied:
    case InstructionKind::ReduceGradients:
    case InstructionKind::Unshard:
    case InstructionKind::Reshard:
    case InstructionKind::ReceiveActivation:
    case InstructionKind::ReceiveGradient:
      break;  // refused at the start; done by `post`
  }
}

void RankWorker::post(const Instruction& receive) { posted_[key_of(receive)] = Clock::now(); }

/// Waits for the data of a posted receive and lays it where its action looks for it.
void RankWorker::complete(const Instruction& receive) {
  at::Tensor tensor = transport_.receive(receive);
  StageBuffers& buffers = stage(receive.stage).buffers(receive);
  auto& place =
      receive.kind == InstructionKind::ReceiveActivation ? buffers.input : buffers.output_gradient;
  place = std::move(tensor);
  note(receive, posted_.extract(key_of(receive)).mapped(), account_.held());
}

void RankWorker::fetch_input(const Instruction& i) {
  const Instruction receive = receive_for(i);
  if (posted_.contains(key_of(receive)))
    return complete(receive);
  const auto local = handed_over_.find(key_of(receive));
  if (local == handed_over_.end())
    return;
  StageBuffers& buffers = stage(i.stage).buffers(i);
  auto& place = i.kind == InstructionKind::Forward ? buffers.input : buffers.output_gradient;
  place = std::move(local->second);
  handed_over_.erase(local);
}

/// Stages of one rank hand over without a transfer.
void RankWorker::hand_on(const Instruction& i) {
  const bool forward = i.kind == InstructionKind::Forward;
  const int next = forward ? i.stage + 1 : i.stage - 1;
  if (!lives_here(next))
    return;
  const auto kind = forward ? InstructionKind::ReceiveActivation : InstructionKind::ReceiveGradient;
  handed_over_[{kind, next, i.microbatch}] =
      forward ? stage(i.stage).output_for_next(i) : stage(i.stage).take_input_gradient(i);
}

void RankWorker::note(const Instruction& i, Clock::time_point begin,
                      plan::Bytes held_before) const {
  if (!options_.observer)
    return;
  const auto since = [&](Clock::time_point time) {
    return plan::Seconds{std::chrono::duration<double>(time - step_begin_).count()};
  };
  options_.observer(
      {rank_, i, since(begin), since(Clock::now()), held_before, account_.peak(), account_.held()});
}

bool RankWorker::stopped() const {
  return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
}

}  // namespace pipewright::exec
