#include "pipewright/exec/transport/gloo_transport.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "gloo_collectives.hpp"
#include "incoming.hpp"
#include "pipewright/plan/error.hpp"
#include "send_thread.hpp"
#include "sent_forms.hpp"

namespace pipewright::exec {
namespace {

using plan::Instruction;

/// Returns a tag of 31 bits for a transfer between two ranks: microbatch, stage, direction.
/// Microbatch -1 stands for the forms that hold for all microbatches.
int tag_of(const Instruction& transfer, int microbatch) {
  constexpr int stages = 1 << 12;
  constexpr int microbatches = (1 << 18) - 1;
  const Instruction receive = receiving_end(transfer);
  if (receive.stage >= stages || microbatch >= microbatches)
    throw plan::InputError(
        fmt::format("{}: the Gloo transport supports at most {} stages and {} microbatches",
                    to_string(transfer), stages, microbatches));
  const bool gradient = receive.kind == plan::InstructionKind::ReceiveGradient;
  return (microbatch + 1) << 13 | receive.stage << 1 | static_cast<int>(gradient);
}

class GlooTransport final : public Transport {
 public:
  GlooTransport(Job& job, TransferOptions options)
      : job_(job),
        options_(options),
        down_(job, "down"),
        collectives_(job),
        exceptions_(std::uncaught_exceptions()) {
    if (options_.communicators == plan::CommunicatorLayout::Edge)
      up_ = std::make_unique<GlooMesh>(job, "up");
    listener_ = job_.watch().on_failure([this](const std::string& why) { end(why); });
  }

  ~GlooTransport() override {
    if (std::uncaught_exceptions() > exceptions_)
      job_.abort(fmt::format("rank {} has ended early", job_.rank()));
    for (auto& [to, thread] : sending_)
      thread.flush();
    job_.watch().forget(listener_);
    end("the transport has been closed");
  }

  void expect(int /*rank*/, const std::vector<Transfer>& transfers, Shapes shapes) override {
    shapes_ = shapes;
    sent_forms_.begin_pass();
    for (auto& [from, incoming] : incoming_)
      incoming.begin_pass();
    for (const Transfer& transfer : transfers)
      if (plan::is_receive(transfer.instruction.kind))
        incoming_from(transfer.from).expect(transfer);
  }

  void send(const Transfer& transfer, Tensors tensors) override {
    job_.require_going();
    Operations started;
    start_send(transfer, tensors, started);
    if (options_.wait_until_taken)
      wait_for(started, {transfer.to}, to_string(transfer.instruction));
    else
      sender_to(transfer.to).add(std::move(started));
  }

  Tensors receive(const Transfer& transfer) override {
    const Watch::Waiting waiting(job_.watch(), {transfer.from}, to_string(transfer.instruction));
    return incoming_from(transfer.from).take(transfer);
  }

  std::vector<Tensors> all_to_all(const std::vector<int>& group, int rank,
                                  const std::vector<Tensors>& parts, Lane lane) override {
    job_.require_going();
    return collectives_.all_to_all(group, rank, parts, lane);
  }

  void require_going() override { job_.require_going(); }
  void abort(const std::string& why) override { job_.abort(why); }

 private:
  /// Gloo has no queues in which transfers wait for each other, so a communicator is a connection
  /// here. CommunicatorLayout::Edge has one for either direction of a pair of ranks.
  /// CommunicatorLayout::Rank would order transfers with different peers, which separate
  /// connections cannot do, so it works as Pair.
  GlooMesh& mesh_of(const Transfer& transfer) {
    return up_ && transfer.from > transfer.to ? *up_ : down_;
  }

  void start_send(const Transfer& transfer, const Tensors& tensors, Operations& started) {
    GlooMesh& mesh = mesh_of(transfer);
    const int to = transfer.to, microbatch = transfer.instruction.microbatch;
    const int tag = tag_of(transfer.instruction, microbatch);
    if (shapes_ == Shapes::Varying)
      return post_message(mesh, tensors, microbatch, least_room, to, tag, started);
    const TensorForms forms = forms_of(tensors);
    require_on_cpu(forms);
    if (const auto before = sent_forms_.before_news(transfer, forms))
      return post_message(mesh, tensors, microbatch, room_for(*before), to,
                          tag_of(transfer.instruction, -1), started);
    post_tensors(mesh, tensors, to, tag, started);
  }

  Incoming& incoming_from(int peer) {
    const auto line_of = [this](const Transfer& transfer) -> Incoming::Line {
      return {&mesh_of(transfer), tag_of(transfer.instruction, transfer.instruction.microbatch),
              tag_of(transfer.instruction, -1)};
    };
    const Incoming::Options how{.ahead = !options_.wait_until_taken,
                                .dynamic = shapes_ == Shapes::Varying};
    return incoming_.try_emplace(peer, how, line_of).first->second;
  }

  SendThread& sender_to(int peer) {
    const std::lock_guard lock(threads_mutex_);
    SendThread& sender = sending_.try_emplace(peer, mesh_to(peer)).first->second;
    if (ended_)
      sender.end();
    return sender;
  }

  GlooMesh& mesh_to(int peer) {
    return mesh_of({.instruction = {}, .from = job_.rank(), .to = peer});
  }

  void wait_for(const Operations& operations, std::vector<int> ranks, std::string where) {
    const Watch::Waiting waiting(job_.watch(), std::move(ranks), std::move(where));
    for (const GlooMesh::Operation& operation : operations)
      mesh_to(operation.peer).wait(operation);
  }

  void end(const std::string& why) {
    const std::lock_guard lock(threads_mutex_);
    ended_ = true;
    for (auto& [to, thread] : sending_)
      thread.end();
    down_.end(why);
    if (up_)
      up_->end(why);
    collectives_.end(why);
  }

  Job& job_;
  const TransferOptions options_;
  Shapes shapes_ = Shapes::Fixed;  // of the current pass
  GlooMesh down_;                  // from lower to higher ranks; both directions without `up_`
  std::unique_ptr<GlooMesh> up_;   // from higher to lower ranks
  GlooCollectives collectives_;
  const int exceptions_;  // uncaught exceptions when this was constructed
  int listener_ = 0;

  SentForms sent_forms_;
  std::map<int, Incoming> incoming_;  // by peer
  std::mutex threads_mutex_;
  bool ended_ = false;
  std::map<int, SendThread> sending_;  // by peer
};

}  // namespace

std::unique_ptr<Transport> make_gloo_transport(Job& job, TransferOptions options) {
  return std::make_unique<GlooTransport>(job, options);
}

}  // namespace pipewright::exec
