#include <algorithm>
#include <cassert>
#include <set>

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/instruction_index.hpp"
#include "transfers_of.hpp"

namespace pipewright::plan {
namespace {

/// Lets ranks take turns with one action each. An action runs only if its input has been received
/// or, on the same rank, computed.
class TurnTaker {
 public:
  explicit TurnTaker(Program program)
      : program_(std::move(program)),
        present_(program_),
        next_(program_.ranks.size(), 0),
        lowered_(program_.ranks.size()) {}

  Program run() && {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < next_.size(); ++rank)
        moved = turn(rank) || moved;
    }
    program_.ranks = std::move(lowered_);
    return std::move(program_);
  }

 private:
  bool turn(std::size_t rank) {
    const auto& list = program_.ranks[rank];
    const std::size_t begin = next_[rank];
    if (begin == list.size())
      return false;
    const std::size_t end = begin + (list[begin].fused_with_next ? 2 : 1);
    for (std::size_t i = begin; i < end; ++i)
      if (!ready(list[i]))
        return false;
    for (std::size_t i = begin; i < end; ++i)
      append(rank, list[i]);
    for (std::size_t i = begin; i < end; ++i)
      if (const auto send = send_of(program_, list[i])) {
        append(rank, *send);
        append(static_cast<std::size_t>(peer_rank(program_, *send)), counterpart(*send));
      }
    next_[rank] = end;
    return true;
  }

  bool ready(const Instruction& i) const {
    if (const auto receive = receive_of(program_, i))
      return present_.find(*receive) >= 0;
    const auto receive = receive_for(i.kind);
    if (!receive)
      return true;
    const int from = peer_stage({*receive, i.stage, i.microbatch});
    const auto makers = makers_for(*receive);
    return from < 0 || from >= stage_count(program_) ||
           std::any_of(makers.begin(), makers.end(), [&](InstructionKind maker) {
             return present_.find(maker, from, i.microbatch) >= 0;
           });
  }

  void append(std::size_t rank, const Instruction& i) {
    lowered_[rank].push_back(i);
    if (has_microbatch(i.kind))
      present_.insert(i, 0);
  }

  Program program_;
  InstructionIndex present_;
  std::vector<std::size_t> next_;
  std::vector<std::vector<Instruction>> lowered_;
};

}  // namespace

Program with_early_receives(Program program) { return TurnTaker(std::move(program)).run(); }

}  // namespace pipewright::plan
