#pragma once

// A connection for any number of messages from one rank to another. Both ends count the messages.

#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::engine {

class MessageLine {
 public:
  /// Connects rank `from` of a ring with the next rank. `transport` must outlive the connection.
  MessageLine(exec::Transport& transport, int from, int to)
      : transport_(&transport), from_(from), to_(to) {}

  void send(exec::Tensors tensors) { transport_->send(next(sending), std::move(tensors)); }
  /// Blocks until the next message arrives. Throws Aborted.
  exec::Tensors receive() {
    const exec::Transfer transfer = next(receiving);
    transport_->post(transfer);
    return transport_->receive(transfer);
  }
  /// Return the transfers to announce to the transport before the first message.
  exec::Transfer sent() const { return {{sending, from_, 0, 0}, from_, to_}; }
  exec::Transfer received() const { return {{receiving, from_ + 1, 0, 0}, from_, to_}; }

 private:
  static constexpr auto sending = plan::InstructionKind::SendActivation;
  static constexpr auto receiving = plan::InstructionKind::ReceiveActivation;
  static constexpr int names = 1 << 16;  // far more than can be in flight

  exec::Transfer next(plan::InstructionKind kind) {
    const int number = count_++ % names;
    return {{kind, kind == sending ? from_ : from_ + 1, number, 0}, from_, to_};
  }

  exec::Transport* transport_;
  int from_, to_;
  int count_ = 0;
};

}  // namespace pipewright::engine
