#include <map>

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/computation.hpp"

namespace pipewright::plan {
namespace {

std::vector<Instruction> stepping_every(const std::vector<Instruction>& instructions, int every) {
  std::map<int, int> backwards;  // by stage: since its last step
  std::vector<Instruction> stepping;
  for (std::size_t at = 0; at < instructions.size(); ++at) {
    const Instruction& i = instructions[at];
    stepping.push_back(i);
    // The gradient is sent before the step.
    const bool sends_next = at + 1 < instructions.size() && is_send(instructions[at + 1].kind) &&
                            instructions[at + 1].microbatch == i.microbatch;
    if (sends_next && makes_weight_gradient(i.kind))
      stepping.push_back(instructions[++at]);
    if (makes_weight_gradient(i.kind) && ++backwards[i.stage] % every == 0)
      stepping.push_back({InstructionKind::OptimizerStep, i.stage});
  }
  return stepping;
}

}  // namespace

Program with_optimizer_steps(Program program, int step_every) {
  program.step_every = step_every;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    auto& instructions = program.ranks[rank];
    bool learns = false;
    for (const Instruction& i : instructions)
      learns = learns || makes_weight_gradient(i.kind);
    if (!learns)
      continue;
    if (step_every > 0) {
      instructions = stepping_every(instructions, step_every);
      continue;
    }
    for (const int stage : program.placement.stages_on(static_cast<int>(rank)))
      instructions.push_back({InstructionKind::OptimizerStep, stage});
  }
  return program;
}

}  // namespace pipewright::plan
