#include "held_items.hpp"

#include <algorithm>
#include <map>

namespace pipewright::sim {

using plan::InstructionKind;

namespace {

double share_before_part(const plan::StageCost& cost, InstructionKind kind) {
  if (kind == InstructionKind::WeightGradient)
    return cost.rerun.weight_gradient_share;
  return kind == InstructionKind::InputGradient ? cost.rerun.input_gradient_share
                                                : cost.rerun.backward_share;
}

}  // namespace

double time_of(const EventPoint& point, const Structure& structure, const StepCosts& costs,
               const Times& times) {
  const EventTimes& event = times[point.event];
  switch (point.when) {
    case When::Start:
      return event.start;
    case When::Part: {
      const plan::Instruction& i = *structure.events()[point.event].instruction;
      const double share =
          share_before_part(costs.stages[static_cast<std::size_t>(i.stage)], i.kind);
      return share == 1 ? event.lets_go() : event.start + share * (event.lets_go() - event.start);
    }
    case When::End:
      break;
  }
  return event.lets_go();
}

namespace {

plan::InstructionIndex index_of_events(const Structure& structure) {
  plan::InstructionIndex index(structure.program());
  for (int event = 0; event < structure.size(); ++event)
    if (const auto& i = *structure.events()[event].instruction; plan::has_microbatch(i.kind))
      index.insert(i, event);
  return index;
}

}  // namespace

HeldItems::HeldItems(const Structure& structure, Holding holding)
    : program_(structure.program()),
      holding_(holding),
      forward_only_(plan::is_forward_only(structure.program())),
      index_(index_of_events(structure)),
      adds_gradients_(place(plan::stage_count(program_), 0), -1) {
  if (holding_.gradient_groups > 0)
    find_gradients_aside(structure);
  if (plan::gathers_parameters(program_))
    find_gathered(structure);
}

void HeldItems::find_gathered(const Structure& structure) {
  std::map<std::pair<int, int>, int> whole;  // by rank and stage
  for (int event = 0; event < structure.size(); ++event) {
    const auto& own = structure.events()[event];
    const plan::Instruction& i = *own.instruction;
    if (i.kind == InstructionKind::Unshard)
      whole[{own.rank, i.stage}] = event;
    else if (i.kind == InstructionKind::Reshard)
      gathered_.push_back({i.stage, whole.at({own.rank, i.stage}), event});
  }
}

void HeldItems::find_gradients_aside(const Structure& structure) {
  struct Gradients {
    int made;  // an event
    int microbatch;
  };
  const auto groups = static_cast<std::size_t>(holding_.gradient_groups);
  std::vector<Gradients> own;  // of a copy, in the order of microbatches
  for (int stage = 0; stage < plan::stage_count(program_); ++stage)
    for (const int rank : structure.ranks_of(stage)) {
      own.clear();
      for (int m = 0; m < program_.microbatches; ++m)
        if (program_.placement.rank_of(stage, m) == rank)
          own.push_back({gradients_made(around(stage, m)), m});
      const std::size_t group_size = std::max<std::size_t>(1, (own.size() + groups - 1) / groups);
      for (std::size_t begin = 0; begin < own.size(); begin += group_size) {
        // A rank's events are numbered in the order of its list: a microbatch is added to the sum
        // when its gradients and those of all microbatches before it exist.
        int adding = -1;
        for (std::size_t at = begin; at < std::min(begin + group_size, own.size()); ++at) {
          if (own[at].made < adding)
            adds_gradients_[place(stage, own[at].microbatch)] = adding;
          adding = std::max(adding, own[at].made);
        }
      }
    }
}

HeldItems::Around HeldItems::around(int stage, int microbatch) const {
  Around at{};
  at.stage = stage;
  at.microbatch = microbatch;
  at.load = find(InstructionKind::Load, at);
  at.forward = find(InstructionKind::Forward, at);
  at.recompute = find(InstructionKind::Recompute, at);
  at.backward =
      std::max(find(InstructionKind::Backward, at), find(InstructionKind::InputGradient, at));
  at.weight_gradient = find(InstructionKind::WeightGradient, at);
  at.is_last = stage + 1 == plan::stage_count(program_);
  const auto is_here = [&](int other) {
    return program_.placement.rank_of(other, microbatch) ==
           program_.placement.rank_of(stage, microbatch);
  };
  at.before_is_here = stage > 0 && is_here(stage - 1);
  at.after_is_here = !at.is_last && is_here(stage + 1);
  at.done = {at.weight_gradient >= 0 ? at.weight_gradient
             : at.backward >= 0      ? at.backward
                                     : at.forward};
  return at;
}

}  // namespace pipewright::sim
