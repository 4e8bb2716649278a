#include "held_items.hpp"

#include <algorithm>
#include <cmath>

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

std::int64_t bytes_of(Amount amount, const StepCosts& costs, int stage, double length) {
  const auto at = static_cast<std::size_t>(stage);
  const plan::StageCost& cost = costs.stages[at];
  const auto scaled = [&](plan::Bytes bytes) -> std::int64_t {
    return length == 1 ? bytes.value : std::llround(static_cast<double>(bytes.value) * length);
  };
  const auto beyond = [](std::int64_t peak, std::int64_t kept) {
    return std::max<std::int64_t>(0, peak - kept);
  };
  const bool for_weights_after =
      at + 1 < costs.stages.size() && costs.stages[at + 1].input_for_weights;
  const bool for_weights_before = at > 0 && costs.stages[at - 1].output_gradient_for_weights;
  // An output that a layer saves goes with what that has made.
  const std::int64_t remade_output = scaled(cost.output_alone);
  switch (amount) {
    case Amount::Loaded:
      return scaled(cost.loaded);
    case Amount::Activation:
      return scaled(cost.activation);
    case Amount::ActivationOfInputGradient:
      return scaled(cost.freed_by_input_gradient);
    case Amount::ActivationOfWeightGradient:
      return scaled(cost.activation) - scaled(cost.freed_by_input_gradient) -
             scaled(cost.output_alone);
    case Amount::OutputAlone:
      return for_weights_after ? 0 : scaled(cost.output_alone);
    case Amount::OutputAloneForWeights:
      return for_weights_after ? scaled(cost.output_alone) : 0;
    case Amount::ActivationLessOutput:
      return scaled(cost.activation) - scaled(cost.output);
    case Amount::Output:
      return scaled(cost.output);
    case Amount::OutputForInputGradient:
      return for_weights_after ? 0 : scaled(cost.output);
    case Amount::OutputForWeights:
      return for_weights_after ? scaled(cost.output) : 0;
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
      return scaled(cost.rerun.freed_by_input_gradient) + remade_output;
    case Amount::RemadeOfWeightGradient:
      return scaled(cost.rerun.remade) - scaled(cost.rerun.freed_by_input_gradient) - remade_output;
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
    case Amount::InputGradientOfInput:
      return for_weights_before ? 0 : scaled(cost.input_gradient_bytes);
    case Amount::InputGradientForWeights:
      return for_weights_before ? scaled(cost.input_gradient_bytes) : 0;
    case Amount::ReceivedActivation:
      return scaled(costs.stages[at - 1].output);
    case Amount::ReceivedGradient:
      return cost.output_gradient_for_weights ? 0
                                              : scaled(costs.stages[at + 1].input_gradient_bytes);
    case Amount::ReceivedGradientForWeights:
      return cost.output_gradient_for_weights ? scaled(costs.stages[at + 1].input_gradient_bytes)
                                              : 0;
    case Amount::GradientsAside:
      return cost.gradients.value;
  }
  return 0;
}

double time_of(const Moment& moment, const Structure& structure, const StepCosts& costs,
               const Times& times) {
  const EventTimes& event = times[moment.event];
  switch (moment.when) {
    case When::Start:
      return event.start;
    case When::Part: {
      const plan::Instruction& i = *structure.events()[moment.event].instruction;
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
                                     : at.forward};
  return at;
}

}  // namespace pipewright::sim
