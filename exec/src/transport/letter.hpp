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
/// For a letter like the last one, where that is not too much for the memory of a socket.
std::int64_t room_for(const TensorForms& forms);

/// `note`: a number for the receiver. Returns at once and adds what it has started.
void post_letter(GlooMesh& mesh, const Tensors& tensors, int note, std::int64_t room, int to,
                 int tag, Operations& started);
/// The same but for what does not fit, which it returns, to be sent under the same tag; undefined
/// where all fits.
at::Tensor post_what_fits(GlooMesh& mesh, const Tensors& tensors, int note, std::int64_t room,
                          int to, int tag, Operations& started);

/// A receive that is posted.
struct AwaitedLetter {
  at::Tensor bytes;
  GlooMesh::Operation operation;
};
AwaitedLetter await_letter(GlooMesh& mesh, std::int64_t room, int from, int tag);
/// Its beginning has come, and the receive of what did not fit is posted.
struct BegunLetter {
  at::Tensor beginning;
  at::Tensor rest;  // undefined: all did fit
  GlooMesh::Operation operation;
};
/// Waits for the beginning. Throws Aborted.
BegunLetter begin_to_open(GlooMesh& mesh, const AwaitedLetter& awaited, int from, int tag);

struct OpenedLetter {
  TensorForms forms;
  Tensors tensors;  // their memory is the message's
  int note = 0;
};
/// Both wait for all of it. Throw Aborted.
OpenedLetter open(GlooMesh& mesh, const BegunLetter& begun);
OpenedLetter open(GlooMesh& mesh, const AwaitedLetter& awaited, int from, int tag);

}  // namespace pipewright::exec
