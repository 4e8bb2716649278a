#include <algorithm>
#include <map>

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/computation.hpp"

namespace pipewright::plan {
namespace {

/// Puts `kind` right behind the last weight gradient, what is fused with it, the sends that other
/// ranks wait for and the reductions that are there, of each stage that `wanted` picks.
template <class Wanted>
void insert_after_last_gradient(Program& program, InstructionKind kind, const Wanted& wanted) {
  for (auto& instructions : program.ranks) {
    std::map<int, std::size_t> last;
    for (std::size_t at = 0; at < instructions.size(); ++at)
      if (makes_weight_gradient(instructions[at].kind) && wanted(instructions[at].stage))
        last[instructions[at].stage] = at;
    if (last.empty())
      continue;
    std::vector<Instruction> reduced, waiting;
    for (std::size_t at = 0; at < instructions.size(); ++at) {
      const Instruction& i = instructions[at];
      reduced.push_back(i);
      const auto found = last.find(i.stage);
      if (found != last.end() && found->second == at)
        waiting.push_back({kind, i.stage});
      const bool goes_on = at + 1 < instructions.size() && (is_send(instructions[at + 1].kind) ||
                                                            is_reduce(instructions[at + 1].kind));
      if (!i.fused_with_next && !goes_on) {
        reduced.insert(reduced.end(), waiting.begin(), waiting.end());
        waiting.clear();
      }
    }
    instructions = std::move(reduced);
  }
}

}  // namespace

Program with_gradient_reduces(Program program, int replicas) {
  insert_after_last_gradient(program, InstructionKind::ReduceGradients, [&](int stage) {
    return replicas > 1 || program.placement.ranks_of(stage).size() > 1;
  });
  return program;
}

Program with_reduces_last(Program program) {
  for (auto& instructions : program.ranks)
    std::stable_partition(instructions.begin(), instructions.end(),
                          [](const Instruction& i) { return !is_reduce(i.kind); });
  return program;
}

Program with_tied_reduces(Program program, const std::vector<int>& stages) {
  if (stages.size() < 2)
    return program;
  insert_after_last_gradient(program, InstructionKind::ReduceTied, [&](int stage) {
    return std::find(stages.begin(), stages.end(), stage) != stages.end();
  });
  return program;
}

}  // namespace pipewright::plan
