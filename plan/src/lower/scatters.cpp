#include "pipewright/plan/lower/lower.hpp"

namespace pipewright::plan {

Program with_scatters(Program program) {
  for (auto& instructions : program.ranks) {
    std::vector<Instruction> lowered, due;
    for (std::size_t at = 0; at < instructions.size(); ++at) {
      const Instruction& i = instructions[at];
      lowered.push_back(i);
      if (makes_weight_gradient(i.kind))
        due.push_back({InstructionKind::ScatterMicrobatch, i.stage, i.microbatch});
      const bool sends_next = at + 1 < instructions.size() && is_send(instructions[at + 1].kind);
      if (i.fused_with_next || sends_next)
        continue;
      lowered.insert(lowered.end(), due.begin(), due.end());
      due.clear();
    }
    instructions = std::move(lowered);
  }
  return program;
}

}  // namespace pipewright::plan
