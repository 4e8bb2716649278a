#include "inbox.hpp"

#include <fmt/format.h>

#include <utility>

#include "pipewright/exec/log.hpp"

namespace pipewright::exec {

using plan::Instruction;
using plan::InstructionKind;

namespace {

std::string in_words(const Tensors& tensors) {
  std::size_t bytes = 0;
  for (const at::Tensor& tensor : tensors)
    bytes += tensor.defined() ? tensor.nbytes() : 0;
  return fmt::format("{} tensor{}, {} bytes", tensors.size(), tensors.size() == 1 ? "" : "s",
                     bytes);
}

}  // namespace

Inbox::Inbox(const JobRank& job_rank, at::Device device, Shapes shapes, Stages& stages,
             Transport& transport, const MemoryAccount& account, Stopwatch& stopwatch,
             Progress& progress)
    : job_rank_(job_rank),
      stream_(Stream::of(device, /*urgent=*/true)),
      shapes_(shapes),
      stages_(stages),
      transport_(transport),
      account_(account),
      stopwatch_(stopwatch),
      progress_(progress) {}

void Inbox::begin(const plan::Program& program) {
  program_ = &program;
  posted_.clear();
  passed_within_rank_.clear();
  std::vector<Transfer> transfers;
  for (const Instruction& i : program.ranks[static_cast<std::size_t>(job_rank_.rank)])
    if (plan::is_receive(i.kind) || plan::is_send(i.kind))
      transfers.push_back(transfer_of(i));
  transport_.expect(job_rank_.in_job(), transfers, shapes_);
}

Transfer Inbox::transfer_of(const Instruction& i) const {
  const int peer = job_rank_.of(plan::peer_rank(*program_, i));
  return plan::is_send(i.kind) ? Transfer{i, job_rank_.in_job(), peer}
                               : Transfer{i, peer, job_rank_.in_job()};
}

void Inbox::post(const Instruction& receive) {
  const OnStream stream(stream_);
  posted_[key_of(receive)] = stopwatch_.now();
  transport_.post(transfer_of(receive));
}

void Inbox::send(const Instruction& i, Tensors tensors) {
  const Transfer transfer = transfer_of(i);
  log(LogSubject::Transfers, LogLevel::Debug,
      [&] { return fmt::format("sends {} to rank {}", in_words(tensors), transfer.to); });
  transport_.send(transfer, std::move(tensors));
}

void Inbox::complete(const Instruction& receive) {
  progress_.starting(receive);
  Tensors tensors;
  Event there;
  {
    const OnStream stream(stream_);
    const Transfer transfer = transfer_of(receive);
    progress_.waits_for(transfer.from);
    tensors = transport_.receive(transfer);
    progress_.waits_for(-1);
    log(LogSubject::Transfers, LogLevel::Debug,
        [&] { return fmt::format("has {} from rank {}", in_words(tensors), transfer.from); });
    there = Event::now();
    stopwatch_.note(receive, posted_.extract(key_of(receive)).mapped(), account_.held());
  }
  deliver(receive, adopt(std::move(tensors), there));
}

void Inbox::deliver(const Instruction& receive, Tensors tensors) {
  Stage& stage = *stages_.at(receive.stage);
  if (receive.kind == InstructionKind::ReceiveActivation)
    stage.receive_inputs(receive, std::move(tensors));
  else
    stage.receive_gradients(receive, std::move(tensors));
}

void Inbox::fetch(const Instruction& i) {
  const Instruction receive{plan::receive_for(i.kind).value(), i.stage, i.microbatch, i.slot};
  if (posted_.contains(key_of(receive)))
    return complete(receive);
  const auto local = passed_within_rank_.find(key_of(receive));
  if (local == passed_within_rank_.end())
    return;
  deliver(receive, std::move(local->second));
  passed_within_rank_.erase(local);
}

void Inbox::pass_within_rank(const Instruction& i) {
  const bool forward = i.kind == InstructionKind::Forward;
  const int next = forward ? i.stage + 1 : i.stage - 1;
  const bool is_here = next >= 0 && next < plan::stage_count(*program_) &&
                       program_->placement.rank_of(next, i.microbatch) == job_rank_.rank;
  if (!is_here)
    return;
  Stage& stage = *stages_.at(i.stage);
  const auto kind = forward ? InstructionKind::ReceiveActivation : InstructionKind::ReceiveGradient;
  passed_within_rank_[{kind, next, i.microbatch}] =
      forward ? stage.outputs_for_next(i) : stage.take_input_gradients(i);
}

}  // namespace pipewright::exec
