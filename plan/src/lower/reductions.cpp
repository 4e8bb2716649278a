#include <algorithm>
#include <map>
#include <tuple>

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/computation.hpp"

namespace pipewright::plan {
namespace {

/// The earliest position of a reduction on a rank: after the instruction at `place`, which is
/// compute number `computed` of the rank.
struct Ready {
  std::size_t place = 0;
  std::size_t computed = 0;
  friend auto operator<=>(const Ready&, const Ready&) = default;
};

/// Returns where a rank has the last weight gradient of each of its stages.
std::map<int, Ready> last_gradients(const std::vector<Instruction>& instructions) {
  std::map<int, Ready> last;
  std::size_t computed = 0;
  for (std::size_t at = 0; at < instructions.size(); ++at) {
    computed += is_compute(instructions[at].kind) ? 1 : 0;
    if (makes_weight_gradient(instructions[at].kind))
      last[instructions[at].stage] = {at, computed};
  }
  return last;
}

struct Collective {
  struct Member {
    Ready ready;
    Instruction instruction;
  };
  std::map<int, Member> members;  // by rank
  std::size_t computed = 0;       // the largest `computed` of its members

  void add(int rank, const Member& member) {
    computed = std::max(computed, member.ready.computed);
    members[rank] = member;
  }
  /// The sort key, which is the same on all ranks. Of collectives that are ready at the same time,
  /// sums over tied layers come before sums over replicas.
  auto key() const {
    const auto& [rank, first] = *members.begin();
    return std::tuple(computed, first.instruction.kind, first.ready, rank, first.instruction.stage);
  }
};

class Reductions {
 public:
  Reductions(const Program& program, const ReductionOptions& options)
      : program_(program), options_(options) {
    const bool have_copies = program.placement.is_bidirectional() || options.replicas > 1;
    if (!have_copies && options.tied_stages.size() < 2)
      return;
    for (const auto& instructions : program.ranks)
      last_.push_back(last_gradients(instructions));
    if (options.tied_stages.size() > 1)
      add_tied();
    for (int stage = 0; stage < stage_count(program); ++stage)
      if (options.replicas > 1 || program.placement.ranks_of(stage).size() > 1)
        add_copies(stage);
    std::sort(collectives_.begin(), collectives_.end(),
              [](const Collective& a, const Collective& b) { return a.key() < b.key(); });
  }

  bool is_empty() const { return collectives_.empty(); }

  std::vector<Instruction> placed(int rank) const {
    const auto& instructions = program_.ranks[static_cast<std::size_t>(rank)];
    std::vector<Instruction> lowered;
    lowered.reserve(instructions.size() + collectives_.size());
    auto next = collectives_.begin();
    for (std::size_t at = 0; at < instructions.size(); ++at) {
      lowered.push_back(instructions[at]);
      const bool sends_next = at + 1 < instructions.size() && is_send(instructions[at + 1].kind);
      if (instructions[at].fused_with_next || sends_next)
        continue;
      for (; next != collectives_.end(); ++next) {
        const auto own = next->members.find(rank);
        if (own == next->members.end())
          continue;
        if (own->second.ready.place > at)
          break;
        lowered.push_back(own->second.instruction);
      }
    }
    return lowered;
  }

 private:
  /// Returns the rank's latest last weight gradient of these stages, or null if it has none of
  /// them.
  const std::pair<const int, Ready>* latest(std::size_t rank,
                                            const std::vector<int>& stages) const {
    const std::pair<const int, Ready>* found = nullptr;
    for (const auto& last : last_[rank])
      if (std::find(stages.begin(), stages.end(), last.first) != stages.end() &&
          (found == nullptr || found->second < last.second))
        found = &last;
    return found;
  }

  Ready at_the_end(std::size_t rank) const {
    const std::size_t size = program_.ranks[rank].size();
    return {size - 1, size};
  }

  void add_tied() {
    Collective tied;
    for (std::size_t rank = 0; rank < last_.size(); ++rank)
      if (const auto* const last = latest(rank, options_.tied_stages))
        tied.add(static_cast<int>(rank), {options_.overlap ? last->second : at_the_end(rank),
                                          {InstructionKind::ReduceTied, last->first}});
    if (!tied.members.empty())
      collectives_.push_back(std::move(tied));
  }

  void add_copies(int stage) {
    const auto& tied = options_.tied_stages;
    const bool shares = tied.size() > 1 && std::find(tied.begin(), tied.end(), stage) != tied.end();
    Collective sum;
    if (shares && !collectives_.empty())
      sum.computed = collectives_.front().computed;  // not before the tied layers are summed
    for (std::size_t rank = 0; rank < last_.size(); ++rank) {
      if (!last_[rank].contains(stage))
        continue;
      const Ready ready = shares ? latest(rank, tied)->second : last_[rank].at(stage);
      sum.add(static_cast<int>(rank), {options_.overlap ? ready : at_the_end(rank),
                                       {options_.scatter ? InstructionKind::ScatterGradients
                                                         : InstructionKind::ReduceGradients,
                                        stage}});
    }
    if (!sum.members.empty())
      collectives_.push_back(std::move(sum));
  }

  const Program& program_;
  const ReductionOptions& options_;
  std::vector<std::map<int, Ready>> last_;  // by rank and stage
  std::vector<Collective> collectives_;     // in the order that all ranks use
};

/// Appends an instruction of the whole rank to the list of each rank.
Program with_last(Program program, InstructionKind kind) {
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    program.ranks[rank].push_back(
        {kind, program.placement.stages_on(static_cast<int>(rank)).front()});
  return program;
}

}  // namespace

Program with_reductions(Program program, const ReductionOptions& options) {
  const Reductions reductions(program, options);
  if (reductions.is_empty())
    return program;
  std::vector<std::vector<Instruction>> ranks;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    ranks.push_back(reductions.placed(static_cast<int>(rank)));
  program.ranks = std::move(ranks);
  return program;
}

Program with_gradient_norm(Program program) {
  return is_forward_only(program) ? program
                                  : with_last(std::move(program), InstructionKind::NormGradients);
}

Program with_shared_loss(Program program) {
  return with_last(std::move(program), InstructionKind::ShareLoss);
}

}  // namespace pipewright::plan
