#include "pipewright/plan/program/validate_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/deadlock.hpp"
#include "pipewright/plan/program/instruction_index.hpp"
#include "pipewright/plan/schedules/validate_schedule.hpp"

namespace pipewright::plan {
namespace {

/// Tracks which microbatch each buffer slot of one rank holds at the current point of the check.
class Slots {
 public:
  explicit Slots(const Program& program)
      : microbatches_(static_cast<std::size_t>(program.microbatches)),
        holder_(microbatches_ * static_cast<std::size_t>(stage_count(program)), -1),
        slot_of_(holder_.size(), -1),
        last_use_(holder_.size(), -1) {}

  void note_use(const Instruction& i, int position) {
    last_use_[at(i.stage, i.microbatch)] = position;
  }

  /// Returns what is wrong with the slot of `i`; empty if nothing is.
  std::string enter(const Instruction& i, int position) {
    if (i.slot < 0)
      return "has no buffer slot";
    if (static_cast<std::size_t>(i.slot) >= microbatches_)
      return fmt::format("uses slot {}, but {} microbatches need no more slots than that", i.slot,
                         microbatches_);
    int& own = slot_of_[at(i.stage, i.microbatch)];
    if (own < 0)
      own = i.slot;
    if (own != i.slot)
      return fmt::format("uses slot {}, but its microbatch lies in slot {}", i.slot, own);
    int& holder = holder_[at(i.stage, i.slot)];
    if (holder >= 0 && holder != i.microbatch)
      return fmt::format("uses slot {}, which still holds microbatch {}", i.slot, holder);
    holder = last_use_[at(i.stage, i.microbatch)] == position ? -1 : i.microbatch;
    return "";
  }

 private:
  std::size_t at(int stage, int number) const {
    return static_cast<std::size_t>(stage) * microbatches_ + static_cast<std::size_t>(number);
  }

  std::size_t microbatches_;
  std::vector<int> holder_;    // (stage, slot) → microbatch
  std::vector<int> slot_of_;   // (stage, microbatch) → slot
  std::vector<int> last_use_;  // (stage, microbatch) → position in the rank's list
};

class ProgramChecker {
 public:
  ProgramChecker(const Program& program, CommunicatorLayout communicators, TransferMode transfers)
      : program_(program), communicators_(communicators), transfers_(transfers) {}

  std::vector<std::string> run() {
    check_bounds();
    if (!errors_.empty())
      return std::move(errors_);
    check_schedule();
    if (!errors_.empty())
      return std::move(errors_);
    const InstructionIndex positions = check_uniqueness();
    check_collectives();
    if (scatters_microbatches(program_))
      check_scatters();
    if (!errors_.empty())
      return std::move(errors_);
    Slots slots(program_);
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
      check_order(rank, positions, slots);
      check_unshards(rank);
    }
    if (errors_.empty())
      if (const auto cycle = deadlock())
        errors_.push_back(*cycle);
    return std::move(errors_);
  }

 private:
  void say(std::size_t rank, const Instruction& instruction, std::string_view what) {
    errors_.push_back(fmt::format("rank {}, {}: {}", rank, to_string(instruction), what));
  }

  void check_bounds() {
    if (program_.asynchronous != (program_.step_every > 0))
      errors_.push_back(fmt::format(
          "asynchronous is {}, but step_every is {}: a stage that steps without a flush does so "
          "after every 1 or more backwards, any other after all of them, which is written as 0",
          program_.asynchronous, program_.step_every));
    std::size_t instructions = 0;
    for (const auto& list : program_.ranks)
      instructions += list.size();
    const auto places = static_cast<std::size_t>(stage_count(program_)) *
                        static_cast<std::size_t>(program_.microbatches);
    if (places > 100'000 && instructions < places) {
      errors_.push_back(
          fmt::format("{} stages and {} microbatches need {} actions at least, but there are {}",
                      stage_count(program_), program_.microbatches, places, instructions));
      return;
    }
    for (const auto& route : program_.placement.routes)
      for (std::size_t stage = 0; stage < route.size(); ++stage)
        if (route[stage] < 0 || route[stage] >= static_cast<int>(program_.ranks.size()))
          errors_.push_back(fmt::format("stage {} is on rank {}, but there are {} ranks", stage,
                                        route[stage], program_.ranks.size()));
    if (!errors_.empty())
      return;
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank)
      for (const Instruction& i : program_.ranks[rank])
        check_bounds(rank, i);
  }

  void check_bounds(std::size_t rank, const Instruction& i) {
    const int stages = stage_count(program_);
    if (i.stage >= stages)
      return say(rank, i, fmt::format("there are {} stages only", stages));
    if (i.microbatch >= program_.microbatches)
      return say(rank, i, fmt::format("there are {} microbatches only", program_.microbatches));
    if (!has_microbatch(i.kind)) {
      if (!program_.placement.holds(static_cast<int>(rank), i.stage))
        say(rank, i,
            fmt::format("stage {} is on rank {}", i.stage, program_.placement.rank_of(i.stage, 0)));
      return;
    }
    const int owner = program_.placement.rank_of(i.stage, i.microbatch);
    if (owner != static_cast<int>(rank))
      say(rank, i, fmt::format("stage {} is on rank {}", i.stage, owner));
    else if (is_send(i.kind) || is_receive(i.kind))
      check_peer(rank, i);
  }

  void check_peer(std::size_t rank, const Instruction& transfer) {
    const int peer = peer_stage(transfer);
    if (peer < 0 || peer >= stage_count(program_))
      say(rank, transfer, "there is no stage at the other end");
    else if (peer_rank(program_, transfer) == static_cast<int>(rank))
      say(rank, transfer, "both stages are on this rank, so no transfer is needed");
  }

  std::optional<std::string> deadlock() const {
    if (communicators_ == program_.communicators && transfers_ == program_.transfers)
      return find_deadlock(Dependencies(program_));
    return find_deadlock(program_, communicators_, transfers_);
  }

  void check_schedule() {
    const Schedule schedule = schedule_of(program_);
    validate(schedule);  // throws its own errors, in the same form
    for (int stage = stage_count(schedule); stage < stage_count(program_); ++stage)
      errors_.push_back(fmt::format("rank {}: stage {} has no action",
                                    program_.placement.rank_of(stage, 0), stage));
  }

  /// Checks that every instruction occurs once and every transfer has its other end. Returns the
  /// position of each instruction in the list of its rank.
  InstructionIndex check_uniqueness() {
    InstructionIndex positions(program_);
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
      int position = 0;
      std::set<InstructionKey> seen;  // instructions of whole stages
      for (const Instruction& i : program_.ranks[rank]) {
        const bool steps = i.kind == InstructionKind::OptimizerStep && !program_.asynchronous;
        if (has_microbatch(i.kind) ? !positions.insert(i, position)
                                   : steps && !seen.insert(key_of(i)).second)
          say(rank, i, "occurs more than once");
        ++position;
      }
    }
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank)
      for (const Instruction& i : program_.ranks[rank])
        if ((is_send(i.kind) || is_receive(i.kind)) && positions.find(counterpart(i)) < 0)
          say(rank, i,
              fmt::format("the other end is missing: {} is missing on rank {}",
                          to_string(counterpart(i)), peer_rank(program_, i)));
    return positions;
  }

  /// Returns the ranks that must take part in a collective that some rank has. The list is empty
  /// for sums over tied layers, whose members are simply the ranks that have them.
  std::vector<int> members_of(const Instruction& i) const {
    std::vector<int> ranks;
    switch (group_of(i.kind)) {
      case Group::Copies:
        return program_.placement.ranks_of(i.stage);
      case Group::All:
        for (int rank = 0; rank < static_cast<int>(program_.ranks.size()); ++rank)
          ranks.push_back(rank);
        return ranks;
      case Group::Tied:
      case Group::None:
        return {};
    }
    return {};
  }

  void check_collectives() {
    std::map<std::tuple<InstructionKind, int, int>, std::pair<Instruction, std::set<int>>> found;
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank)
      for (const Instruction& i : program_.ranks[rank]) {
        if (!is_collective(i.kind))
          continue;
        const int stage = group_of(i.kind) == Group::Copies ? i.stage : 0;
        auto& [first, ranks] =
            found.try_emplace({i.kind, stage, i.microbatch}, i, std::set<int>{}).first->second;
        if (!ranks.insert(static_cast<int>(rank)).second && i.kind != InstructionKind::Unshard)
          say(rank, i, "occurs more than once");
      }
    for (const auto& [key, collective] : found)
      for (const int rank : members_of(collective.first))
        if (!collective.second.contains(rank))
          errors_.push_back(fmt::format(
              "rank {} lacks {}, which rank {} has: all members of a collective must have it", rank,
              traits_of(std::get<0>(key)).word, *collective.second.begin()));
  }

  /// Checks that gathered parameters are released, and that a stage computes only while they are
  /// gathered.
  void check_unshards(std::size_t rank) {
    std::map<int, bool> whole;  // by stage that gathers parameters
    bool lets_go = false;
    for (const Instruction& i : program_.ranks[rank]) {
      if (i.kind == InstructionKind::Unshard)
        whole[i.stage] = false;
      lets_go = lets_go || i.kind == InstructionKind::Reshard;
    }
    if (whole.empty() && !lets_go)
      return;
    for (const Instruction& i : program_.ranks[rank]) {
      const auto own = whole.find(i.stage);
      const bool is_whole = own != whole.end() && own->second;
      if (i.kind == InstructionKind::Unshard && std::exchange(own->second, true))
        say(rank, i, "occurs twice without a RESHARD in between");
      if (i.kind == InstructionKind::Reshard && !is_whole)
        say(rank, i, fmt::format("needs {}UNSHARD before it", i.stage));
      if (traits_of(i.kind).action && own != whole.end() && !is_whole)
        say(rank, i, fmt::format("needs {}UNSHARD before it", i.stage));
      if (i.kind == InstructionKind::Reshard && is_whole)
        own->second = false;
    }
    for (const auto& [stage, is_whole] : whole)
      if (is_whole)
        say(rank, {InstructionKind::Unshard, stage}, "has no RESHARD after it");
  }

  /// Checks that if one microbatch's gradients of a stage are reduced separately, all are.
  void check_scatters() {
    // By stage: gradients computed, and gradients reduced.
    std::map<int, std::pair<int, int>> counts;
    for (const auto& instructions : program_.ranks)
      for (const Instruction& i : instructions) {
        if (makes_weight_gradient(i.kind))
          ++counts[i.stage].first;
        if (i.kind == InstructionKind::ScatterMicrobatch)
          ++counts[i.stage].second;
      }
    for (const auto& [stage, count] : counts)
      if (count.second != count.first)
        errors_.push_back(fmt::format(
            "stage {}: {} of {} microbatches have a SCATTER: all must have one, or none", stage,
            count.second, count.first));
  }

  /// Returns the instruction that must precede `i` on the same rank, if there is one.
  std::optional<InstructionKind> need(const Instruction& i) const {
    if (const auto receive = receive_for(i.kind)) {
      const int other = i.stage + traits_of(*receive).towards;
      return crosses_ranks(program_, i.stage, other, i.microbatch) ? receive : std::nullopt;
    }
    if (is_send(i.kind))
      return makers_for(*traits_of(i.kind).other_end).front();
    if (i.kind == InstructionKind::ScatterMicrobatch)
      return InstructionKind::Backward;  // or WeightGradient
    return {};
  }

  void check_need(std::size_t rank, const Instruction& i, int position, InstructionKind kind,
                  const InstructionIndex& positions) {
    int found = positions.find(kind, i.stage, i.microbatch);
    if (found < 0 && kind == InstructionKind::Backward)
      found = positions.find(i.kind == InstructionKind::ScatterMicrobatch
                                 ? InstructionKind::WeightGradient
                                 : InstructionKind::InputGradient,
                             i.stage, i.microbatch);
    if (found < 0 || found > position)
      say(rank, i,
          fmt::format("needs {} before it", to_string(Instruction{kind, i.stage, i.microbatch})));
  }

  void check_order(std::size_t rank, const InstructionIndex& positions, Slots& slots) {
    const auto& list = program_.ranks[rank];
    for (int at = 0; at < static_cast<int>(list.size()); ++at)
      if (has_microbatch(list[static_cast<std::size_t>(at)].kind))
        slots.note_use(list[static_cast<std::size_t>(at)], at);

    std::map<int, bool> stepped;  // stages whose optimizer has stepped
    const int last_stage = stage_count(program_) - 1;
    for (int at = 0; at < static_cast<int>(list.size()); ++at) {
      const Instruction& i = list[static_cast<std::size_t>(at)];
      if (i.kind == InstructionKind::OptimizerStep)
        stepped[i.stage] = true;
      if (i.kind == InstructionKind::GatherParameters && !stepped.contains(i.stage))
        say(rank, i, fmt::format("needs {}STEP before it", i.stage));
      if ((i.kind == InstructionKind::NormGradients && !stepped.empty()) ||
          (sums_copies(i.kind) && stepped.contains(i.stage)))
        say(rank, i, fmt::format("comes after {}STEP", stepped.begin()->first));
      if (!has_microbatch(i.kind))
        continue;
      if (i.kind == InstructionKind::Forward && (i.stage == 0 || i.stage == last_stage))
        check_need(rank, i, at, InstructionKind::Load, positions);
      if (const auto kind = need(i))
        check_need(rank, i, at, *kind, positions);
      if (is_compute(i.kind) && !program_.asynchronous && !stepped.empty() &&
          stepped.contains(i.stage))
        say(rank, i, fmt::format("comes after {}STEP", i.stage));
      const std::string wrong = slots.enter(i, at);
      if (!wrong.empty())
        say(rank, i, wrong);
    }
  }

  const Program& program_;
  const CommunicatorLayout communicators_;
  const TransferMode transfers_;
  std::vector<std::string> errors_;
};

}  // namespace

void validate(const Program& program) {
  validate(program, program.communicators, program.transfers);
}

void validate(const Program& program, CommunicatorLayout communicators, TransferMode transfers) {
  const auto errors = ProgramChecker(program, communicators, transfers).run();
  if (!errors.empty())
    throw InputError(listed_lines(errors));
}

}  // namespace pipewright::plan
