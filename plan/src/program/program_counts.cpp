#include "pipewright/plan/program/program_counts.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "pipewright/plan/program/computation.hpp"

namespace pipewright::plan {

std::vector<int> slot_counts(const Program& program) {
  std::vector<int> counts(static_cast<std::size_t>(stage_count(program)), 0);
  for (const auto& instructions : program.ranks)
    for (const Instruction& instruction : instructions) {
      int& count = counts[static_cast<std::size_t>(instruction.stage)];
      count = std::max(count, instruction.slot + 1);
    }
  return counts;
}

namespace {

/// Returns the largest number of receive buffers in use. A buffer is held until the last compute of
/// its microbatch on the stage.
int most_received(const std::vector<Instruction>& instructions) {
  std::map<std::pair<int, int>, std::size_t> last_use;  // (stage, microbatch) → position
  for (std::size_t at = 0; at < instructions.size(); ++at)
    if (is_compute(instructions[at].kind) && instructions[at].microbatch >= 0)
      last_use[{instructions[at].stage, instructions[at].microbatch}] = at;
  std::map<std::size_t, int> returned;  // position → buffers released there
  int held = 0, most = 0;
  for (std::size_t at = 0; at < instructions.size(); ++at) {
    const Instruction& i = instructions[at];
    if (is_receive(i.kind)) {
      most = std::max(most, ++held);
      ++returned[last_use[{i.stage, i.microbatch}]];
    }
    held -= returned[at];
  }
  return most;
}

/// Returns the largest number of weight versions in use. Each forward uses the newest weights, and
/// their version is kept until its backward.
int most_versions(const std::vector<Instruction>& instructions, int stage) {
  std::map<int, int> users;       // version → microbatches between forward and backward
  std::map<int, int> version_of;  // microbatch → version
  int newest = 0;
  std::size_t most = 1;
  for (const Instruction& i : instructions) {
    if (i.stage != stage)
      continue;
    if (i.kind == InstructionKind::Forward) {
      version_of[i.microbatch] = newest;
      ++users[newest];
    }
    if (makes_weight_gradient(i.kind))
      if (--users[version_of[i.microbatch]] == 0)
        users.erase(version_of[i.microbatch]);
    if (i.kind == InstructionKind::OptimizerStep)
      ++newest;
    most = std::max(most, users.size() + (users.contains(newest) ? 0 : 1));
  }
  return static_cast<int>(most);
}

}  // namespace

std::vector<int> receive_slots(const Program& program) {
  std::vector<int> slots;
  for (const auto& instructions : program.ranks)
    slots.push_back(most_received(instructions));
  return slots;
}

std::vector<int> weight_versions(const Program& program) {
  std::vector<int> versions(program.ranks.size(), 1);
  if (!program.asynchronous)
    return versions;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (const int stage : program.placement.stages_on(static_cast<int>(rank)))
      versions[rank] = std::max(versions[rank], most_versions(program.ranks[rank], stage));
  return versions;
}

}  // namespace pipewright::plan
