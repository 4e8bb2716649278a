#include "sent_forms.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {

plan::Instruction receiving_end(const plan::Instruction& instruction) {
  return plan::is_send(instruction.kind) ? plan::counterpart(instruction) : instruction;
}

bool SentForms::is_news(const Transfer& send, const TensorForms& forms) {
  const plan::Instruction receive = receiving_end(send.instruction);
  const auto [known, fresh] =
      known_.try_emplace(Route(receive.kind, receive.stage, send.to), forms);
  if (const std::string what = difference(forms, known->second); !what.empty())
    throw plan::InputError(fmt::format(
        "stage {}, microbatch {}: {} as in the first transfer; shapes that change must be "
        "declared dynamic",
        send.instruction.stage, send.instruction.microbatch, what));
  return fresh;
}

}  // namespace pipewright::exec
