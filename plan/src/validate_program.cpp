#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program.hpp"
#include "pipewright/plan/schedule.hpp"

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

/// The compute actions of a Program as the Schedule that it was lowered from.
Schedule schedule_of(const Program& program) {
  Schedule schedule{.microbatches = program.microbatches, .ranks = {}};
  for (const auto& instructions : program.ranks) {
    auto& actions = schedule.ranks.emplace_back();
    for (const Instruction& i : instructions)
      if (const auto kind = action_kind(i.kind))
        actions.push_back({*kind, i.stage, i.microbatch});
  }
  return schedule;
}

class Checker {
 public:
  explicit Checker(const Program& program) : program_(program) {}

  std::vector<std::string> run() {
    check_bounds();
    if (!errors_.empty())
      return errors_;
    const Schedule schedule = schedule_of(program_);
    validate(schedule);  // throws by itself: the words are the same
    for (int stage = stage_count(schedule); stage < stage_count(program_); ++stage)
      errors_.push_back(fmt::format("rank {}: stage {} has no action",
                                    program_.rank_of_stage[static_cast<std::size_t>(stage)],
                                    stage));
    if (!errors_.empty())
      return errors_;
    check_transfers();
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank)
      check_order(rank);
    return errors_;
  }

 private:
  void say(std::size_t rank, const Instruction& instruction, std::string_view what) {
    errors_.push_back(fmt::format("rank {}, {}: {}", rank, to_string(instruction), what));
  }

  void check_bounds() {
    const int stages = stage_count(program_);
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank)
      for (const Instruction& i : program_.ranks[rank]) {
        if (i.stage >= stages) {
          say(rank, i, fmt::format("there are {} stages only", stages));
          continue;
        }
        const int owner = program_.rank_of_stage[static_cast<std::size_t>(i.stage)];
        if (owner != static_cast<int>(rank))
          say(rank, i, fmt::format("stage {} lives on rank {}", i.stage, owner));
        if (i.microbatch >= program_.microbatches)
          say(rank, i, fmt::format("there are {} microbatches only", program_.microbatches));
        if ((is_send(i.kind) || is_receive(i.kind)) &&
            (peer_stage(i) < 0 || peer_stage(i) >= stages))
          say(rank, i, "there is no stage at the other end");
        else if ((is_send(i.kind) || is_receive(i.kind)) &&
                 peer_rank(program_, i) == static_cast<int>(rank))
          say(rank, i, "both stages live on this rank, which hands over without a transfer");
      }
  }

  void check_transfers() {
    std::map<InstructionKey, int> count;
    for (const auto& instructions : program_.ranks)
      for (const Instruction& i : instructions)
        ++count[key_of(i)];
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank)
      for (const Instruction& i : program_.ranks[rank]) {
        if (count[key_of(i)] > 1)
          say(rank, i, "stands more than once");
        if (!is_send(i.kind) && !is_receive(i.kind))
          continue;
        const Instruction other = counterpart(i);
        if (!count.contains(key_of(other)))
          say(rank, i,
              fmt::format("nothing completes it: {} is missing on rank {}", to_string(other),
                          peer_rank(program_, i)));
      }
  }

  /// The instructions of the same rank that must have run before.
  std::vector<Instruction> needs(const Instruction& i) const {
    const auto local = [&](InstructionKind kind) {
      return Instruction{kind, i.stage, i.microbatch};
    };
    std::vector<Instruction> needed;
    switch (i.kind) {
      case InstructionKind::Forward:
        if (i.stage == 0 || i.stage + 1 == stage_count(program_))
          needed.push_back(local(InstructionKind::Load));
        if (crosses_ranks(program_, i.stage, i.stage - 1))
          needed.push_back(local(InstructionKind::ReceiveActivation));
        return needed;
      case InstructionKind::Backward:
      case InstructionKind::InputGradient:
        if (crosses_ranks(program_, i.stage, i.stage + 1))
          needed.push_back(local(InstructionKind::ReceiveGradient));
        return needed;
      case InstructionKind::SendActivation:
        return {local(InstructionKind::Forward)};
      case InstructionKind::SendGradient:
      case InstructionKind::Load:
      case InstructionKind::ReceiveActivation:
      case InstructionKind::ReceiveGradient:
      case InstructionKind::WeightGradient:
      case InstructionKind::Recompute:
      case InstructionKind::OptimizerStep:
        return {};
    }
    return {};
  }

  void check_order(std::size_t rank) {
    std::set<InstructionKey> done;
    std::map<std::pair<int, int>, int> holder;            // (stage, slot) → microbatch
    std::map<std::pair<int, int>, int> slot_of;           // (stage, microbatch) → slot
    std::map<std::pair<int, int>, std::size_t> last_use;  // (stage, microbatch) → position
    const auto& list = program_.ranks[rank];
    for (std::size_t at = 0; at < list.size(); ++at)
      last_use[{list[at].stage, list[at].microbatch}] = at;

    for (std::size_t at = 0; at < list.size(); ++at) {
      const Instruction& i = list[at];
      for (const Instruction& before : needs(i))
        if (!done.contains(key_of(before)))
          say(rank, i, fmt::format("needs {} before it", to_string(before)));
      if (is_compute(i.kind) && done.contains({InstructionKind::OptimizerStep, i.stage, -1}))
        say(rank, i, fmt::format("comes after {}STEP", i.stage));
      if (i.kind == InstructionKind::SendGradient &&
          !done.contains({InstructionKind::Backward, i.stage, i.microbatch}) &&
          !done.contains({InstructionKind::InputGradient, i.stage, i.microbatch}))
        say(rank, i, fmt::format("needs {}B{} before it", i.stage, i.microbatch));
      done.insert(key_of(i));
      if (i.kind == InstructionKind::OptimizerStep)
        continue;
      check_slot(rank, i, holder, slot_of);
      if (last_use[{i.stage, i.microbatch}] == at)
        holder.erase({i.stage, i.slot});
    }
  }

  void check_slot(std::size_t rank, const Instruction& i,
                  std::map<std::pair<int, int>, int>& holder,
                  std::map<std::pair<int, int>, int>& slot_of) {
    if (i.slot < 0)
      return say(rank, i, "has no buffer slot");
    if (i.slot >= program_.microbatches)
      return say(rank, i,
                 fmt::format("uses slot {}, but {} microbatches need no more slots than that",
                             i.slot, program_.microbatches));
    const int own = slot_of.try_emplace({i.stage, i.microbatch}, i.slot).first->second;
    if (own != i.slot)
      say(rank, i, fmt::format("uses slot {}, but its microbatch lies in slot {}", i.slot, own));
    const int microbatch = holder.try_emplace({i.stage, i.slot}, i.microbatch).first->second;
    if (microbatch != i.microbatch)
      say(rank, i,
          fmt::format("uses slot {}, which still holds microbatch {}", i.slot, microbatch));
  }

  const Program& program_;
  std::vector<std::string> errors_;
};

}  // namespace

void validate(const Program& program) {
  const auto errors = Checker(program).run();
  if (!errors.empty())
    throw InputError(fmt::format("{}", fmt::join(errors, "\n")));
}

}  // namespace pipewright::plan
