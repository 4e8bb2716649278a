#pragma once

// The first transfer of a route in a pass: what the forms of all its transfers are, and with them
// the tensors themselves, where they fit in as much room as the last pass's took. Both ends know
// the room before, so the receive is posted before anything is known of what will come. A receive
// that can be posted only then costs a message back, which Gloo's threads must get a core for at
// the sender, where a rank computes.

#include <cstdint>
#include <optional>

#include "tensor_mail.hpp"

namespace pipewright::exec {

/// Bytes for tensors in the next pass's letter of a route; 0: too many for the memory of a socket.
std::int64_t room_for(const TensorForms& forms);

/// True: the tensors are in it. Else they have to be posted beside it. `microbatch`: whose they
/// are.
bool post_first_letter(GlooMesh& mesh, const Tensors& tensors, const TensorForms& forms,
                       int microbatch, std::int64_t room, int to, int tag, Operations& started);

/// A receive that is posted.
struct AwaitedLetter {
  at::Tensor bytes;
  GlooMesh::Operation operation;
};
AwaitedLetter await_first_letter(GlooMesh& mesh, std::int64_t room, int from, int tag);

struct FirstLetter {
  TensorForms forms;
  int microbatch = 0;
  std::optional<Tensors> tensors;
};
/// Waits for it. Throws Aborted.
FirstLetter open(GlooMesh& mesh, const AwaitedLetter& awaited, int from, int tag);

}  // namespace pipewright::exec
