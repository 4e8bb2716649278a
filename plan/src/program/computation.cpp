#include "pipewright/plan/program/computation.hpp"

#include <algorithm>

namespace pipewright::plan {
Schedule schedule_of(const Program& program) {
  Schedule schedule{.microbatches = program.microbatches, .ranks = {}};
  for (const auto& instructions : program.ranks) {
    auto& actions = schedule.ranks.emplace_back();
    actions.reserve(instructions.size());
    for (const Instruction& i : instructions)
      if (const auto kind = traits_of(i.kind).action)
        actions.push_back({*kind, i.stage, i.microbatch, i.fused_with_next});
  }
  return schedule;
}

namespace {

template <class Is>
bool any_instruction(const Program& program, const Is& is) {
  return std::any_of(program.ranks.begin(), program.ranks.end(), [&](const auto& instructions) {
    return std::any_of(instructions.begin(), instructions.end(), is);
  });
}

}  // namespace

bool is_forward_only(const Program& program) {
  return !any_instruction(program,
                          [](const Instruction& i) { return makes_weight_gradient(i.kind); });
}

bool scatters_microbatches(const Program& program) {
  return any_instruction(
      program, [](const Instruction& i) { return i.kind == InstructionKind::ScatterMicrobatch; });
}

bool gathers_parameters(const Program& program) {
  return any_instruction(program,
                         [](const Instruction& i) { return i.kind == InstructionKind::Unshard; });
}

}  // namespace pipewright::plan
