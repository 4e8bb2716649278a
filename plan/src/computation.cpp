#include "pipewright/plan/computation.hpp"

#include <algorithm>
#include <optional>

namespace pipewright::plan {
namespace {

std::optional<ActionKind> action_kind(InstructionKind kind) {
  for (const ActionKind action :
       {ActionKind::Forward, ActionKind::Backward, ActionKind::InputGradient,
        ActionKind::WeightGradient, ActionKind::Recompute})
    if (instruction_kind(action) == kind)
      return action;
  return {};
}

}  // namespace

Schedule schedule_of(const Program& program) {
  Schedule schedule{.microbatches = program.microbatches, .ranks = {}};
  for (const auto& instructions : program.ranks) {
    auto& actions = schedule.ranks.emplace_back();
    for (const Instruction& i : instructions)
      if (const auto kind = action_kind(i.kind))
        actions.push_back({*kind, i.stage, i.microbatch, i.fused_with_next});
  }
  return schedule;
}

bool makes_weight_gradient(InstructionKind kind) {
  const auto action = action_kind(kind);
  return action && makes_weight_gradient(*action);
}

bool is_forward_only(const Program& program) {
  return std::none_of(program.ranks.begin(), program.ranks.end(), [](const auto& instructions) {
    return std::any_of(instructions.begin(), instructions.end(),
                       [](const Instruction& i) { return makes_weight_gradient(i.kind); });
  });
}

}  // namespace pipewright::plan
