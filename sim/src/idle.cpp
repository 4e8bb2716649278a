#include "pipewright/sim/idle.hpp"

#include <algorithm>

namespace pipewright::sim {

using plan::IdleCause;
using plan::InstructionKind;

namespace {

bool is_backward(InstructionKind kind) {
  return kind == InstructionKind::Backward || kind == InstructionKind::InputGradient ||
         kind == InstructionKind::WeightGradient || kind == InstructionKind::Recompute;
}

}  // namespace

double IdleTime::of_rank(int rank) const {
  double sum = 0;
  for (const double seconds : by_cause[static_cast<std::size_t>(rank)])
    sum += seconds;
  return sum;
}

IdleCauses::IdleCauses(const Structure& structure)
    : structure_(structure), ranks_(structure.program().ranks.size()) {
  const plan::Program& program = structure.program();
  for (int event = 0; event < structure.size(); ++event) {
    const auto& own = structure.events()[event];
    const InstructionKind kind = own.instruction->kind;
    if (plan::is_compute(kind) || (program.blocking && !plan::is_reduce(kind)))
      ranks_[static_cast<std::size_t>(own.rank)].lane.push_back(event);
  }
  for (Rank& rank : ranks_) {
    const auto kind_at = [&](std::size_t i) {
      return structure.events()[rank.lane[i]].instruction->kind;
    };
    int first_backward = -1, first_forward = 0;
    for (std::size_t i = rank.lane.size(); i-- > 0;) {
      if (is_backward(kind_at(i)))
        first_backward = static_cast<int>(i);
      if (kind_at(i) == InstructionKind::Forward)
        first_forward = static_cast<int>(i);
      if (kind_at(i) == InstructionKind::Forward && rank.last_forward == 0)
        rank.last_forward = static_cast<int>(i);
    }
    rank.first_backward = first_backward < 0 ? first_forward : first_backward;
  }
}

const IdleTime& IdleCauses::of(const Times& times) {
  idle_.spans.clear();
  idle_.by_cause.assign(ranks_.size(), {});
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    visit_rank(rank, times);
  return idle_;
}

void IdleCauses::visit_rank(std::size_t rank, const Times& times) {
  rank_ = static_cast<int>(rank);
  from_ = 0;
  const Rank& own = ranks_[rank];
  const int count = static_cast<int>(own.lane.size());
  for (int i = 0; i < count; ++i) {
    const int event = own.lane[static_cast<std::size_t>(i)];
    const EventTimes& at = times[event];
    const bool computes = plan::is_compute(structure_.events()[event].instruction->kind);
    const double until = computes ? at.start : at.end;
    if (until > from_) {
      const IdleCause phase = i <= own.first_backward ? IdleCause::WarmUp
                              : i > own.last_forward  ? IdleCause::CoolDown
                                                      : IdleCause::Imbalance;
      explain_gap(event, phase, until, times);
    }
    from_ = std::max(from_, at.end);
  }
  gap_end_ = times.iteration;
  enter(IdleCause::CoolDown, gap_end_);
}

void IdleCauses::explain_gap(int event, IdleCause phase, double until, const Times& times) {
  const auto& own = structure_.events()[event];
  const InstructionKind kind = own.instruction->kind;
  gap_end_ = until;
  if (kind == InstructionKind::OptimizerStep) {
    explain_reductions(event, phase, times);
  } else if (plan::is_send(kind)) {  // blocking, and perhaps waiting for its receiver
    const int receiver = structure_.events()[own.partner].lane;
    if (structure_.program().transfers == plan::TransferMode::Rendezvous && receiver >= 0)
      enter(phase, times[receiver].end);
    enter(IdleCause::Queue, times[event].start);
    enter(IdleCause::Exposed, gap_end_);
  } else if (plan::is_receive(kind)) {
    explain_data(event, phase, times);
  } else if (own.data >= 0) {
    explain_data(own.data, phase, times);
  }
  enter(phase, gap_end_);  // nothing is left, unless clocks disagree
}

/// The lane waits for `receive`.
void IdleCauses::explain_data(int receive, IdleCause phase, const Times& times) {
  const auto& own = structure_.events()[receive];
  const int send = own.partner;
  if (send < 0)
    return;
  const int maker = structure_.events()[send].lane;
  enter(phase, maker < 0 ? 0 : times[maker].end);
  enter(IdleCause::Queue, times[send].start);
  enter(structure_.program().blocking ? IdleCause::Exposed : IdleCause::Transfer, times[send].end);
  enter(IdleCause::Queue, gap_end_);
}

/// The step waits for the last of its reductions.
void IdleCauses::explain_reductions(int step, IdleCause phase, const Times& times) {
  int last = -1;
  structure_.events().for_each_predecessor(step, [&](int before, plan::Until) {
    const bool reduces = plan::is_reduce(structure_.events()[before].instruction->kind);
    if (reduces && (last < 0 || times[before].end > times[last].end))
      last = before;
  });
  if (last < 0)
    return;
  enter(phase, times[last].start);
  enter(IdleCause::Exposed, gap_end_);
}

void IdleCauses::enter(IdleCause cause, double until) {
  until = std::min(until, gap_end_);
  if (!(until > from_))
    return;
  auto& spans = idle_.spans;
  const bool goes_on = !spans.empty() && spans.back().rank == rank_ &&
                       spans.back().cause == cause && spans.back().end.value == from_;
  if (goes_on)
    spans.back().end = {until};
  else
    spans.push_back({rank_, cause, {from_}, {until}});
  idle_.by_cause[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(cause)] += until - from_;
  from_ = until;
}

}  // namespace pipewright::sim
