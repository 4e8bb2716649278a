#include <map>
#include <set>
#include <utility>

#include "pipewright/plan/lower.hpp"

namespace pipewright::plan {
namespace {

using Buffers = std::pair<int, int>;  // (stage, microbatch)

/// Colours the lifetimes of one rank's buffers, in order of their first use: for intervals the
/// lowest free slot is optimal, so each stage gets as few slots as it ever holds at once.
void assign_slots(std::vector<Instruction>& instructions) {
  std::map<Buffers, std::size_t> last_use;
  for (std::size_t at = 0; at < instructions.size(); ++at)
    last_use[{instructions[at].stage, instructions[at].microbatch}] = at;

  std::map<Buffers, int> held;
  std::map<int, std::set<int>> taken;  // stage → slots
  for (std::size_t at = 0; at < instructions.size(); ++at) {
    Instruction& i = instructions[at];
    if (i.microbatch < 0)
      continue;
    std::set<int>& slots = taken[i.stage];
    const Buffers buffers{i.stage, i.microbatch};
    if (!held.contains(buffers)) {
      int slot = 0;
      while (slots.contains(slot))
        ++slot;
      slots.insert(slot);
      held[buffers] = slot;
    }
    i.slot = held[buffers];
    if (last_use[buffers] == at)
      slots.erase(i.slot);
  }
}

}  // namespace

Program with_slots(Program program) {
  for (auto& instructions : program.ranks)
    assign_slots(instructions);
  return program;
}

}  // namespace pipewright::plan
