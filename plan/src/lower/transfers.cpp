#include "pipewright/plan/lower.hpp"

namespace pipewright::plan {
Program with_transfers(Program program) {
  for (auto& instructions : program.ranks) {
    std::vector<Instruction> lowered;
    for (const Instruction& i : instructions) {
      const bool forward = i.kind == InstructionKind::Forward;
      const bool backward =
          i.kind == InstructionKind::Backward || i.kind == InstructionKind::InputGradient;
      const bool before = crosses_ranks(program, i.stage, i.stage - 1);
      const bool after = crosses_ranks(program, i.stage, i.stage + 1);

      if (forward && before)
        lowered.push_back({InstructionKind::ReceiveActivation, i.stage, i.microbatch});
      if (backward && after)
        lowered.push_back({InstructionKind::ReceiveGradient, i.stage, i.microbatch});
      lowered.push_back(i);
      if (forward && after)
        lowered.push_back({InstructionKind::SendActivation, i.stage, i.microbatch});
      if (backward && before)
        lowered.push_back({InstructionKind::SendGradient, i.stage, i.microbatch});
    }
    instructions = std::move(lowered);
  }
  return program;
}

}  // namespace pipewright::plan
