#include "pipewright/sim/causes/idle.hpp"

#include <algorithm>

#include "last_reduction.hpp"

namespace pipewright::sim {

using plan::IdleCause;
using plan::InstructionKind;

namespace {

/// The sender's compute, its queue, the transfer, the receiver's queue; a collective, and what it
/// waits for.
constexpr std::size_t most_causes_of_a_gap = 6;

}  // namespace

double mean_bubble(const IdleTime& idle, double iteration_s) {
  double all = 0;
  for (int rank = 0; rank < static_cast<int>(idle.by_cause.size()); ++rank)
    all += idle.of_rank(rank);
  return all / (iteration_s * static_cast<double>(idle.by_cause.size()));
}

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
    if (plan::holds_compute(program, kind))
      ranks_[static_cast<std::size_t>(own.rank)].compute.push_back(entry(event));
  }
  std::size_t most_spans = 0;
  for (Rank& rank : ranks_) {
    most_spans += most_causes_of_a_gap * rank.compute.size() + 1;  // one at the end
    const auto kind_at = [&](std::size_t i) {
      return structure.events()[rank.compute[i].event].instruction->kind;
    };
    int first_backward = -1, first_forward = 0;
    for (std::size_t i = rank.compute.size(); i-- > 0;) {
      if (plan::is_of_backward(kind_at(i)))
        first_backward = static_cast<int>(i);
      if (kind_at(i) == InstructionKind::Forward)
        first_forward = static_cast<int>(i);
      if (kind_at(i) == InstructionKind::Forward && rank.last_forward == 0)
        rank.last_forward = static_cast<int>(i);
    }
    rank.first_backward = first_backward < 0 ? first_forward : first_backward;
  }
  idle_.spans.reserve(most_spans);
}

IdleCauses::ComputeEntry IdleCauses::entry(int event) const {
  const plan::Program& program = structure_.program();
  const auto& own = structure_.events()[event];
  const InstructionKind kind = own.instruction->kind;
  ComputeEntry entry{.event = event, .computes = plan::is_compute(kind)};
  if (plan::traits_of(kind).waits_for_collectives) {
    entry.wait = Wait::Reductions;
  } else if (plan::is_send(kind)) {  // blocking, and perhaps waiting for its receiver
    entry.wait = Wait::Receiver;
    if (program.transfers == plan::TransferMode::Rendezvous)
      entry.maker = structure_.events()[own.partner].compute;
  } else {
    const int receive = plan::is_receive(kind) ? event : own.data;
    const int send = receive < 0 ? -1 : structure_.events()[receive].partner;
    if (send >= 0)
      entry = {event, send, structure_.events()[send].compute, Wait::Data, entry.computes};
  }
  return entry;
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
  const int count = static_cast<int>(own.compute.size());
  for (int i = 0; i < count; ++i) {
    const ComputeEntry& entry = own.compute[static_cast<std::size_t>(i)];
    const EventTimes& at = times[entry.event];
    const double until = entry.computes ? at.start : at.end;
    if (until > from_) {
      const IdleCause phase = i <= own.first_backward ? IdleCause::WarmUp
                              : i > own.last_forward  ? IdleCause::CoolDown
                                                      : IdleCause::Imbalance;
      attribute_gap(entry, phase, until, times);
    }
    from_ = std::max(from_, at.end);
  }
  gap_end_ = times.iteration;
  enter(IdleCause::CoolDown, gap_end_);
}

void IdleCauses::attribute_gap(const ComputeEntry& entry, IdleCause phase, double until,
                               const Times& times) {
  gap_end_ = until;
  switch (entry.wait) {
    case Wait::Nothing:
      break;
    case Wait::Data:
      attribute_data(entry, phase, times);
      break;
    case Wait::Receiver:
      if (entry.maker >= 0)
        enter(phase, times[entry.maker].end);
      enter(IdleCause::Queue, times[entry.event].start);
      enter(IdleCause::Exposed, gap_end_);
      break;
    case Wait::Reductions:
      attribute_reductions(entry.event, phase, times);
      break;
  }
  if (const int collective = structure_.events()[entry.event].queue;
      entry.computes && collective >= 0) {
    enter(phase, times[collective].start);
    enter(IdleCause::Exposed, times[collective].end);
  }
  enter(IdleCause::Launch, gap_end_);
}

void IdleCauses::attribute_data(const ComputeEntry& entry, IdleCause phase, const Times& times) {
  enter(phase, entry.maker < 0 ? 0 : times[entry.maker].end);
  enter(IdleCause::Queue, times[entry.send].start);
  enter(structure_.program().blocking ? IdleCause::Exposed : IdleCause::Transfer,
        times[entry.send].end);
  if (from_ < gap_end_)  // rarely true, so the receive is seldom looked up
    enter(IdleCause::Queue, times[structure_.events()[entry.send].partner].end);
}

/// Attributes the wait of an optimizer step for the last of its reductions.
void IdleCauses::attribute_reductions(int step, IdleCause phase, const Times& times) {
  const int last = last_reduction(structure_, times, step);
  if (last < 0)
    return;
  enter(phase, times[last].start);
  enter(IdleCause::Exposed, times[last].end);
}

void IdleCauses::enter(IdleCause cause, double until) {
  until = std::min(until, gap_end_);
  if (!(until > from_))
    return;
  auto& spans = idle_.spans;
  const bool continues = !spans.empty() && spans.back().rank == rank_ &&
                         spans.back().cause == cause && spans.back().end.value == from_;
  if (continues)
    spans.back().end = {until};
  else
    spans.push_back({rank_, cause, {from_}, {until}});
  idle_.by_cause[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(cause)] += until - from_;
  from_ = until;
}

}  // namespace pipewright::sim
