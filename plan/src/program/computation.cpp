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

bool is_forward_only(const Program& program) {
  return std::none_of(program.ranks.begin(), program.ranks.end(), [](const auto& instructions) {
    return std::any_of(instructions.begin(), instructions.end(),
                       [](const Instruction& i) { return makes_weight_gradient(i.kind); });
  });
}

}  // namespace pipewright::plan
