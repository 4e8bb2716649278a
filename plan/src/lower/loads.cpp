#include "pipewright/plan/lower.hpp"

namespace pipewright::plan {

Program with_loads(Program program) {
  const int last = stage_count(program) - 1;
  for (auto& instructions : program.ranks) {
    std::vector<Instruction> lowered;
    for (const Instruction& i : instructions) {
      if (i.kind == InstructionKind::Forward && (i.stage == 0 || i.stage == last))
        lowered.push_back({InstructionKind::Load, i.stage, i.microbatch});
      lowered.push_back(i);
    }
    instructions = std::move(lowered);
  }
  return program;
}

}  // namespace pipewright::plan
