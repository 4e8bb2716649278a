#include "held_items.hpp"

#include <algorithm>
#include <cmath>

namespace pipewright::sim {

using plan::InstructionKind;

std::int64_t bytes_of(Amount amount, const StepCosts& costs, int stage, double length) {
  const auto at = static_cast<std::size_t>(stage);
  const plan::StageCost& cost = costs.stages[at];
  const auto scaled = [&](plan::Bytes bytes) -> std::int64_t {
    return length == 1 ? bytes.value : std::llround(static_cast<double>(bytes.value) * length);
  };
  const auto beyond = [](std::int64_t peak, std::int64_t kept) {
    return std::max<std::int64_t>(0, peak - kept);
  };
  switch (amount) {
    case Amount::Loaded:
      return scaled(cost.loaded);
    case Amount::Activation:
      return scaled(cost.activation);
    case Amount::ActivationOfInputGradient:
      return scaled(cost.freed_by_input_gradient);
    case Amount::ActivationOfWeightGradient:
      return scaled(cost.activation) - scaled(cost.freed_by_input_gradient);
    case Amount::ActivationLessOutput:
      return scaled(cost.activation) - scaled(cost.output);
    case Amount::Output:
      return scaled(cost.output);
    case Amount::ForwardTransient:
      return beyond(scaled(cost.forward_peak), scaled(cost.activation));
    case Amount::InputGradientTransient:
      return beyond(scaled(cost.input_gradient_peak), 0);
    case Amount::WeightGradientTransient:
      return beyond(scaled(cost.weight_gradient_peak), 0);
    case Amount::RerunKept:
      return scaled(cost.rerun.kept);
    case Amount::RerunForwardTransient:
      return beyond(scaled(cost.rerun.forward_peak), scaled(cost.rerun.kept) + scaled(cost.output));
    case Amount::RemadeOfInputGradient:
      return scaled(cost.rerun.freed_by_input_gradient);
    case Amount::RemadeOfWeightGradient:
      return scaled(cost.rerun.remade) - scaled(cost.rerun.freed_by_input_gradient);
    case Amount::RemadeOfWeightGradientLessOutput:
      return scaled(cost.rerun.remade) - scaled(cost.rerun.freed_by_input_gradient) -
             scaled(cost.output);
    case Amount::RerunTransient:
      return beyond(scaled(cost.rerun.rerun_peak), scaled(cost.rerun.remade));
    case Amount::RerunBackwardTransient:
      return beyond(scaled(cost.rerun.backward_peak), 0);
    case Amount::RerunInputGradientTransient:
      return beyond(scaled(cost.rerun.input_gradient_peak), 0);
    case Amount::RerunForWeights:
      return scaled(cost.rerun.left_for_weights);
    case Amount::BackwardTransient:
      return beyond(scaled(cost.backward_peak), 0);
    case Amount::GradientsForWeights:
      return scaled(cost.gradients_for_weights);
    case Amount::InputGradient:
      return scaled(cost.input_gradient_bytes);
    case Amount::ReceivedActivation:
      return scaled(costs.stages[at - 1].output);
    case Amount::ReceivedGradient:
      return scaled(costs.stages[at + 1].input_gradient_bytes);
    case Amount::GradientsAside:
      return cost.gradients.value;
  }
  return 0;
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
          own.push_back({around(stage, m).done.event, m});
      const std::size_t group_size = std::max<std::size_t>(1, (own.size() + groups - 1) / groups);
      for (std::size_t begin = 0; begin < own.size(); begin += group_size) {
        // A rank's events are numbered in the order of its list: the sum takes in a microbatch when
        // it and all before it have been made.
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
                                     : at.forward,
             false};
  return at;
}

}  // namespace pipewright::sim
