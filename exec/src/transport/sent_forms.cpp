#include "sent_forms.hpp"

#include <fmt/format.h>

#include <utility>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {

plan::Instruction receiving_end(const plan::Instruction& instruction) {
  return plan::is_send(instruction.kind) ? plan::counterpart(instruction) : instruction;
}

void SentForms::begin_pass() {
  for (auto& [route, known] : known_)
    known.of_this_pass = false;
}

std::optional<TensorForms> SentForms::before_news(const Transfer& send, const TensorForms& forms) {
  const plan::Instruction receive = receiving_end(send.instruction);
  Known& known = known_[Route(receive.kind, receive.stage, send.to)];
  if (!std::exchange(known.of_this_pass, true))
    return std::exchange(known.forms, forms);
  if (const std::string what = difference(forms, known.forms); !what.empty())
    throw plan::InputError(fmt::format(
        "stage {}, microbatch {}: {} as in the first transfer; shapes that change must be "
        "declared dynamic",
        send.instruction.stage, send.instruction.microbatch, what));
  return {};
}

}  // namespace pipewright::exec
