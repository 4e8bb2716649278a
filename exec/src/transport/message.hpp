#pragma once

// Tensors in one message that says what they are. Both ends know how much room it has, so its
// receive is posted before anything is known of what will come; what does not fit follows in one
// more. A receive that can be posted only then costs a message back, for which Gloo's threads must
// get a core at the sender, where a rank computes.

#include <cstdint>

#include "tensor_mail.hpp"

namespace pipewright::exec {

/// Bytes of room where nothing is known of what came before.
constexpr std::int64_t least_room = 448;
/// For a message like the last one, where that is not too much for the memory of a socket.
std::int64_t room_for(const TensorForms& forms);

/// `note`: a number for the receiver. Returns at once and adds what it has started.
void post_message(GlooMesh& mesh, const Tensors& tensors, int note, std::int64_t room, int to,
                  int tag, Operations& started);
/// The same but for what does not fit, which it returns, to be sent under the same tag; undefined
/// where all fits.
at::Tensor post_what_fits(GlooMesh& mesh, const Tensors& tensors, int note, std::int64_t room,
                          int to, int tag, Operations& started);

/// A receive that is posted.
struct AwaitedMessage {
  at::Tensor bytes;
  GlooMesh::Operation operation;
};
AwaitedMessage await_message(GlooMesh& mesh, std::int64_t room, int from, int tag);
/// Its beginning has come, and the receive of what did not fit is posted.
struct BegunMessage {
  at::Tensor beginning;
  at::Tensor rest;  // undefined: all did fit
  GlooMesh::Operation operation;
};
/// Waits for the beginning. Throws Aborted.
BegunMessage begin_to_open(GlooMesh& mesh, const AwaitedMessage& awaited, int from, int tag);

struct ReceivedMessage {
  TensorForms forms;
  Tensors tensors;  // their memory is the message's
  int note = 0;
};
/// Both wait for all of it. Throw Aborted.
ReceivedMessage open(GlooMesh& mesh, const BegunMessage& begun);
ReceivedMessage open(GlooMesh& mesh, const AwaitedMessage& awaited, int from, int tag);

}  // namespace pipewright::exec
