#include "inbox.hpp"

#include <utility>

namespace pipewright::exec {

using plan::Instruction;
using plan::InstructionKind;

namespace {

/// The receive that brings what `i` needs, if a rank border lies before it.
Instruction receive_for(const Instruction& i) {
  const auto kind = i.kind == InstructionKind::Forward ? InstructionKind::ReceiveActivation
                                                       : InstructionKind::ReceiveGradient;
  return {kind, i.stage, i.microbatch, i.slot};
}

}  // namespace

Inbox::Inbox(const JobRank& place, at::Device device, Shapes shapes, Stages& stages,
             Transport& transport, const MemoryAccount& account, Stopwatch& stopwatch,
             Progress& progress)
    : place_(place),
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
  handed_over_.clear();
  std::vector<Transfer> transfers;
  for (const Instruction& i : program.ranks[static_cast<std::size_t>(place_.rank)])
    if (plan::is_receive(i.kind) || plan::is_send(i.kind))
      transfers.push_back(transfer_of(i));
  transport_.expect(place_.self(), transfers, shapes_);
}

Transfer Inbox::transfer_of(const Instruction& i) const {
  const int peer = place_.of(plan::peer_rank(*program_, i));
  return plan::is_send(i.kind) ? Transfer{i, place_.self(), peer}
                               : Transfer{i, peer, place_.self()};
}

void Inbox::post(const Instruction& receive) {
  const OnStream stream(stream_);
  posted_[key_of(receive)] = stopwatch_.now();
  transport_.post(transfer_of(receive));
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
    there = Event::now();
    stopwatch_.note(receive, posted_.extract(key_of(receive)).mapped(), account_.held());
  }
  lay_down(receive, adopt(std::move(tensors), there));
}

void Inbox::lay_down(const Instruction& receive, Tensors tensors) {
  Stage& stage = *stages_.at(receive.stage);
  if (receive.kind == InstructionKind::ReceiveActivation)
    stage.receive_inputs(receive, std::move(tensors));
  else
    stage.receive_gradients(receive, std::move(tensors));
}

void Inbox::fetch(const Instruction& i) {
  const Instruction receive = receive_for(i);
  if (posted_.contains(key_of(receive)))
    return complete(receive);
  const auto local = handed_over_.find(key_of(receive));
  if (local == handed_over_.end())
    return;
  lay_down(receive, std::move(local->second));
  handed_over_.erase(local);
}

void Inbox::hand_on(const Instruction& i) {
  const bool forward = i.kind == InstructionKind::Forward;
  const int next = forward ? i.stage + 1 : i.stage - 1;
  const bool is_here = next >= 0 && next < plan::stage_count(*program_) &&
                       program_->placement.rank_of(next, i.microbatch) == place_.rank;
  if (!is_here)
    return;
  Stage& stage = *stages_.at(i.stage);
  const auto kind = forward ? InstructionKind::ReceiveActivation : InstructionKind::ReceiveGradient;
  handed_over_[{kind, next, i.microbatch}] =
      forward ? stage.outputs_for_next(i) : stage.take_input_gradients(i);
}

}  // namespace pipewright::exec
