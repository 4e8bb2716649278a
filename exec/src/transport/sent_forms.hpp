#pragma once

// Sends the forms of tensors once per route and pass, because all microbatches have the same forms.

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "pipewright/exec/transport/transport.hpp"
#include "tensor_form.hpp"

namespace pipewright::exec {

/// The common properties of all microbatches of a stage and direction between two ranks: the
/// receiving instruction's kind and stage, and the other rank.
using Route = std::tuple<plan::InstructionKind, int, int>;

/// Returns the receive of a transfer, given its send or its receive.
plan::Instruction receiving_end(const plan::Instruction& instruction);

/// The forms that a rank has sent. The first transfer of a route in a pass announces them for the
/// whole pass.
class SentForms {
 public:
  /// Begins a pass. Each pass announces its forms, because an evaluation may have microbatches of a
  /// different size.
  void begin_pass();
  /// Returns the previous pass's forms if this is the route's first transfer in the pass (forms of
  /// no tensors if there was no such pass); otherwise nothing. Throws InputError if the forms
  /// differ from those of the pass's first transfer.
  std::optional<TensorForms> before_news(const Transfer& send, const TensorForms& forms);

 private:
  struct Known {
    TensorForms forms{};
    bool of_this_pass = false;
  };
  std::map<Route, Known> known_;
};

}  // namespace pipewright::exec
