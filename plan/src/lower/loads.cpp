#include <algorithm>

#include "pipewright/plan/lower/lower.hpp"

namespace pipewright::plan {

Program with_loads(Program program) {
  const int last = stage_count(program) - 1;
  const auto needs_load = [&](const Instruction& i) {
    return i.kind == InstructionKind::Forward && (i.stage == 0 || i.stage == last);
  };
  for (auto& instructions : program.ranks) {
    const auto loads_here = std::count_if(instructions.begin(), instructions.end(), needs_load);
    if (loads_here == 0)
      continue;
    std::vector<Instruction> lowered;
    lowered.reserve(instructions.size() + static_cast<std::size_t>(loads_here));
    for (std::size_t at = 0; at < instructions.size(); ++at) {
      const Instruction& i = instructions[at];
      const Instruction load{InstructionKind::Load, i.stage, i.microbatch};
      // Nothing may come between the two actions of a fused pair.
      const bool is_second = at > 0 && instructions[at - 1].fused_with_next;
      if (needs_load(i))
        lowered.insert(lowered.end() - (is_second ? 1 : 0), load);
      lowered.push_back(i);
    }
    instructions = std::move(lowered);
  }
  return program;
}

}  // namespace pipewright::plan
