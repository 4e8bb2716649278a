#pragma once

// Microbatches look alike, so a route says once per pass what its tensors look like.

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "pipewright/exec/transport/transport.hpp"
#include "tensor_form.hpp"

namespace pipewright::exec {

/// What all microbatches of a stage and direction between two ranks have in common: the receiving
/// instruction's kind and stage, and the other rank.
using Route = std::tuple<plan::InstructionKind, int, int>;

/// `instruction`: the send or the receive of the transfer.
plan::Instruction receiving_end(const plan::Instruction& instruction);

/// The forms that a rank has sent: the first transfer of a route says them for all of a pass.
class SentForms {
 public:
  /// An evaluation may have microbatches of its own size.
  void begin_pass();
  /// Where this is the route's first in the pass, the forms of the pass before (none: of no
  /// tensors). Throws InputError where the first was other forms.
  std::optional<TensorForms> before_news(const Transfer& send, const TensorForms& forms);

 private:
  struct Known {
    TensorForms forms{};
    bool of_this_pass = false;
  };
  std::map<Route, Known> known_;
};

}  // namespace pipewright::exec
