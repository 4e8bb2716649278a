#pragma once

// Messages that contain tensors and their forms. Both ends know a message's size in advance (its
// room), so the receive is posted before the contents are known; what does not fit follows in a
// second message. Posting a receive only then would cost a message back to the sender, and Gloo's
// threads would need a core there, where a rank computes.

#include <cstdint>

#include "tensor_mail.hpp"

namespace pipewright::exec {

/// Room, in bytes, if nothing is known of previous messages.
constexpr std::int64_t least_room = 448;
/// Returns the room for a message like the last one, unless that is too much for a socket's buffer.
std::int64_t room_for(const TensorForms& forms);

/// Starts to send a message and returns at once; appends the started operations. `note` is a number
/// for the receiver.
void post_message(GlooMesh& mesh, const Tensors& tensors, int note, std::int64_t room, int to,
                  int tag, Operations& started);
/// Starts to send only what fits into `room`. Returns the rest, which the caller must send with the
/// same tag; undefined if all fits.
at::Tensor post_what_fits(GlooMesh& mesh, const Tensors& tensors, int note, std::int64_t room,
                          int to, int tag, Operations& started);

/// A message whose receive is posted.
struct AwaitedMessage {
  at::Tensor bytes;
  GlooMesh::Operation operation;
};
AwaitedMessage await_message(GlooMesh& mesh, std::int64_t room, int from, int tag);
/// A message whose beginning has arrived. The receive of the rest is posted.
struct BegunMessage {
  at::Tensor beginning;
  at::Tensor rest;  // undefined if all did fit
  GlooMesh::Operation operation;
};
/// Blocks until the beginning has arrived. Throws Aborted.
BegunMessage begin_to_open(GlooMesh& mesh, const AwaitedMessage& awaited, int from, int tag);

struct ReceivedMessage {
  TensorForms forms;
  Tensors tensors;  // they use the message's memory
  int note = 0;
};
/// Both functions block until the whole message has arrived. They throw Aborted.
ReceivedMessage open(GlooMesh& mesh, const BegunMessage& begun);
ReceivedMessage open(GlooMesh& mesh, const AwaitedMessage& awaited, int from, int tag);

}  // namespace pipewright::exec
