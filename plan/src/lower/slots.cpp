#include <algorithm>
#include <queue>

#include "pipewright/plan/lower/lower.hpp"

namespace pipewright::plan {
namespace {

/// The slots of one stage: the released ones, lowest first, and the number of slots made so far.
struct FreeSlots {
  std::priority_queue<int, std::vector<int>, std::greater<>> returned;
  int made = 0;

  int take() {
    if (returned.empty())
      return made++;
    const int slot = returned.top();
    returned.pop();
    return slot;
  }
};

/// Assigns slots by coloring the lifetimes of one rank's buffers, in order of first use. For
/// intervals the lowest free slot is optimal, so each stage gets only as many slots as it holds at
/// once.
class SlotColoring {
 public:
  explicit SlotColoring(const Program& program)
      : microbatches_(static_cast<std::size_t>(program.microbatches)),
        stages_(static_cast<std::size_t>(stage_count(program))),
        last_use_(microbatches_ * stages_, 0),
        slot_(microbatches_ * stages_, -1) {}

  void color(std::vector<Instruction>& instructions) {
    std::vector<FreeSlots> free(stages_);
    for (std::size_t at = 0; at < instructions.size(); ++at)
      if (instructions[at].microbatch >= 0)
        last_use_[place(instructions[at])] = at;
    for (std::size_t at = 0; at < instructions.size(); ++at) {
      Instruction& i = instructions[at];
      if (i.microbatch < 0)
        continue;
      int& slot = slot_[place(i)];
      if (slot < 0)
        slot = free[static_cast<std::size_t>(i.stage)].take();
      i.slot = slot;
      if (last_use_[place(i)] == at)
        free[static_cast<std::size_t>(i.stage)].returned.push(slot);
    }
  }

 private:
  std::size_t place(const Instruction& i) const {
    return static_cast<std::size_t>(i.stage) * microbatches_ +
           static_cast<std::size_t>(i.microbatch);
  }

  std::size_t microbatches_;
  std::size_t stages_;
  std::vector<std::size_t> last_use_;  // by stage and microbatch, which are on one rank
  std::vector<int> slot_;
};

}  // namespace

Program with_slots(Program program) {
  SlotColoring coloring(program);
  for (auto& instructions : program.ranks)
    coloring.color(instructions);
  return program;
}

}  // namespace pipewright::plan
