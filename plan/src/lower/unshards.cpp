#include <algorithm>
#include <set>

#include "pipewright/plan/lower/lower.hpp"

namespace pipewright::plan {
namespace {

/// Returns the distinct stages of the instructions from `at` on, until `most` are found. The stages
/// of a fused pair are taken together, even beyond `most`.
std::vector<int> next_stages(const std::vector<Instruction>& instructions, std::size_t at,
                             int most) {
  std::vector<int> stages;
  for (; at < instructions.size(); ++at) {
    if (std::find(stages.begin(), stages.end(), instructions[at].stage) == stages.end())
      stages.push_back(instructions[at].stage);
    if (!instructions[at].fused_with_next && static_cast<int>(stages.size()) >= most)
      break;
  }
  return stages;
}

}  // namespace

Program with_unshards(Program program, int most) {
  for (auto& instructions : program.ranks) {
    std::set<int> all;
    for (const Instruction& instruction : instructions)
      all.insert(instruction.stage);
    const int at_once = std::min(most, static_cast<int>(all.size()));
    std::set<int> whole;
    std::vector<Instruction> lowered;
    for (std::size_t at = 0; at < instructions.size(); ++at) {
      const bool is_second = at > 0 && instructions[at - 1].fused_with_next;
      if (!is_second) {
        const auto wanted = next_stages(instructions, at, at_once);
        for (const int stage : std::set<int>(whole))
          if (std::find(wanted.begin(), wanted.end(), stage) == wanted.end()) {
            lowered.push_back({InstructionKind::Reshard, stage});
            whole.erase(stage);
          }
        for (const int stage : wanted)
          if (whole.insert(stage).second)
            lowered.push_back({InstructionKind::Unshard, stage});
      }
      lowered.push_back(instructions[at]);
    }
    for (const int stage : whole)
      lowered.push_back({InstructionKind::Reshard, stage});
    instructions = std::move(lowered);
  }
  return program;
}

}  // namespace pipewright::plan
