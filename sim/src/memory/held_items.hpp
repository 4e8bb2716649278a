#pragma once

// The rules of memory: which bytes a rank holds, from when to when. All other figures about memory
// are computed from this list.

#include <algorithm>

#include "held_amounts.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/instruction_index.hpp"
#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/structure/step_costs.hpp"
#include "pipewright/sim/structure/structure.hpp"

namespace pipewright::sim {

/// A time of an event. `Part`: the last layer no longer needs the received gradient, if layers are
/// recomputed in several groups. `End`: for a transfer, when it releases its queue.
enum class When : std::uint8_t { Start, Part, End };

struct EventPoint {
  int event = -1;
  When when = When::End;
};

double time_of(const EventPoint& point, const Structure& structure, const StepCosts& costs,
               const Times& times);

struct HeldItem {
  const char* name;  // "activations", followed by the name of `named_by`
  int named_by;      // an event
  Amount amount;
  int stage;
  EventPoint from;
  EventPoint until;
  int outlasts = -1;  // an event of another stage: held until this ends, if that is later
};

class HeldItems {
 public:
  HeldItems(const Structure& structure, Holding holding);

  /// Calls `visit(item)` for everything that the rank of this stage and microbatch holds for them.
  template <class Visit>
  void for_each(int stage, int microbatch, const Visit& visit) const;
  /// Calls `visit(item)` for parameters that are all-gathered and released again, on the rank of
  /// `named_by`.
  template <class Visit>
  void for_each_gathered(const Visit& visit) const;

 private:
  /// The events of one stage and microbatch; -1: none.
  struct Around {
    int stage, microbatch;
    int load, forward, recompute;
    int backward;         // B, or else I
    int weight_gradient;  // W, where the backward is split
    bool before_is_here;  // the previous stage is on the same rank
    bool after_is_here;   // … the next stage
    bool is_last;         // there is no next stage
    EventPoint done;      // the microbatch's data are no longer needed
  };

  template <class Visit>
  void captured(const Around& at, const Visit& visit) const;
  void find_gathered(const Structure& structure);
  void find_gradients_aside(const Structure& structure);
  template <class Visit>
  void gradients(const Around& at, const Visit& visit) const;
  /// Returns the event at whose end the stage has the microbatch's part of its standing gradients.
  int gradients_made(const Around& at) const {
    return std::max(at.done.event, find(plan::InstructionKind::ScatterMicrobatch, at));
  }
  Around around(int stage, int microbatch) const;
  template <class Visit>
  void activations(const Around& at, const Visit& visit) const;
  template <class Visit>
  void recomputed(const Around& at, const Visit& visit) const;
  template <class Visit>
  void transients(const Around& at, const Visit& visit) const;
  template <class Visit>
  void local_transfers(const Around& at, const Visit& visit) const;
  template <class Visit>
  void input_gradient(const Around& at, const Visit& visit) const;
  /// Returns true if the next stage reads this stage's memory.
  bool is_read_by_after(const Around& at) const {
    return !at.is_last && (at.after_is_here || !copies());
  }
  /// Returns when the gradient that a stage received is free.
  static EventPoint used_by_last_layer(const Around& at, int event) {
    return {event, at.recompute >= 0 ? When::Part : When::End};
  }

  int find(plan::InstructionKind kind, const Around& at) const {
    return index_.find(kind, at.stage, at.microbatch);
  }
  bool copies() const { return holding_.local_transfer == plan::TensorTransfer::Copy; }
  std::size_t place(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(program_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }

  const plan::Program& program_;
  const Holding holding_;
  const bool forward_only_;
  const plan::InstructionIndex index_;  // of events
  struct Gathered {
    int stage;
    int unshard, reshard;  // events
  };
  std::vector<Gathered> gathered_;
  /// The event at whose end gradients that were set aside are added; -1: none were.
  std::vector<int> adds_gradients_;
};

template <class Visit>
void HeldItems::for_each(int stage, int microbatch, const Visit& visit) const {
  const Around at = around(stage, microbatch);
  if (at.forward < 0)
    return;
  if (at.load >= 0)
    visit(HeldItem{stage == 0 ? "input" : "target",
                   at.load,
                   Amount::Loaded,
                   stage,
                   {at.load, When::Start},
                   holding_.captures ? EventPoint{at.forward, When::Start} : at.done});
  if (holding_.captures) {
    captured(at, visit);
  } else {
    if (at.recompute >= 0)
      recomputed(at, visit);
    else
      activations(at, visit);
    transients(at, visit);
    local_transfers(at, visit);
  }
  gradients(at, visit);
}

/// Visits the gathered parameters, in addition to the own shard, from the start of the all-gather
/// until the stage is resharded.
template <class Visit>
void HeldItems::for_each_gathered(const Visit& visit) const {
  for (const auto& [stage, unshard, reshard] : gathered_) {
    const auto keep = [&, stage = stage, unshard = unshard](const char* name, Amount amount,
                                                            int until) {
      visit(HeldItem{name, unshard, amount, stage, {unshard, When::Start}, {until}});
    };
    keep("parameters of", Amount::ParametersWhole, reshard);
    if (copies())
      keep("received parameters of", Amount::ParametersReceived, unshard);
  }
}

/// Visits gradients. If replicas shard the gradients, those of a microbatch are whole until their
/// reduce-scatter is done.
template <class Visit>
void HeldItems::gradients(const Around& at, const Visit& visit) const {
  const auto keep = [&](const char* name, Amount amount, EventPoint from, int until) {
    visit(HeldItem{name, at.done.event, amount, at.stage, from, {until}});
  };
  if (const int scatter = find(plan::InstructionKind::ScatterMicrobatch, at); scatter >= 0) {
    keep("gradients of", Amount::GradientsWhole, {at.done.event, When::Start}, scatter);
    if (copies())
      keep("received gradients of", Amount::GradientsReceived, {scatter, When::Start}, scatter);
  }
  if (const int adding = adds_gradients_[place(at.stage, at.microbatch)]; adding >= 0)
    keep("gradients set aside", Amount::GradientsAside, {gradients_made(at)}, adding);
}

/// Visits what a forward keeps. Without a backward it is released at once, except data being sent.
/// An output that no layer saves stays until the backward begins from it, and while the next stage
/// reads it.
template <class Visit>
void HeldItems::activations(const Around& at, const Visit& visit) const {
  const auto keep = [&](const char* name, Amount amount, EventPoint until, int outlasts = -1) {
    visit(HeldItem{name, at.forward, amount, at.stage, {at.forward, When::Start}, until, outlasts});
  };
  if (forward_only_ && copies() && !at.is_last && !at.after_is_here) {
    keep("activations", Amount::ActivationLessOutput, at.done);
    keep("output", Amount::Output, {find(plan::InstructionKind::SendActivation, at)});
    return;
  }
  const int weights_after =
      is_read_by_after(at) ? around(at.stage + 1, at.microbatch).weight_gradient : -1;
  if (at.weight_gradient < 0 && weights_after < 0)
    return keep("activations", Amount::Activation, at.done);
  keep("activations", Amount::ActivationOfInputGradient, {at.backward});
  keep("activations", Amount::ActivationOfWeightGradient, at.done);
  keep("activations", Amount::OutputAlone, {at.backward});
  keep("activations", Amount::OutputAloneForWeights, {at.backward}, weights_after);
}

/// Visits what a recomputed microbatch holds. The forward keeps its output, while the next stage
/// reads it on this rank, and the inputs of the layer groups that are recomputed one at a time. The
/// stage's own input is with its producer, or in the receive buffer. R recomputes the activations
/// of the last group, and the output again. The part that an input gradient frees and the rest are
/// separate items; with an unsplit backward both end with it.
template <class Visit>
void HeldItems::recomputed(const Around& at, const Visit& visit) const {
  const auto keep = [&](const char* name, int by, Amount amount, EventPoint until) {
    visit(HeldItem{name, by, amount, at.stage, {by, When::Start}, until});
  };
  if (is_read_by_after(at)) {
    const Around after = around(at.stage + 1, at.microbatch);
    keep("output", at.forward, Amount::OutputForInputGradient, {after.backward});
    keep("output", at.forward, Amount::OutputForWeights, after.done);
  } else if (!at.is_last) {
    keep("output", at.forward, Amount::Output, {find(plan::InstructionKind::SendActivation, at)});
  }
  keep("inputs of layers", at.forward, Amount::RerunKept, at.done);
  keep("activations", at.recompute, Amount::RemadeOfInputGradient, {at.backward});
  keep("activations", at.recompute, Amount::RemadeOfWeightGradient, at.done);
}

template <class Visit>
void HeldItems::transients(const Around& at, const Visit& visit) const {
  const auto beside = [&](int event, Amount amount) {
    if (event >= 0)
      visit(HeldItem{"transient of", event, amount, at.stage, {event, When::Start}, {event}});
  };
  const bool reruns = at.recompute >= 0;
  const bool splits = at.weight_gradient >= 0;
  const Amount backward =
      splits ? (reruns ? Amount::RerunInputGradientTransient : Amount::InputGradientTransient)
             : (reruns ? Amount::RerunBackwardTransient : Amount::BackwardTransient);
  beside(at.forward, reruns ? Amount::RerunForwardTransient : Amount::ForwardTransient);
  beside(at.recompute, Amount::RerunTransient);
  beside(at.backward, backward);
  beside(at.weight_gradient, Amount::WeightGradientTransient);
  if (!splits)
    return;
  if (reruns)
    visit(HeldItem{"recomputed activations",
                   at.backward,
                   Amount::RerunForWeights,
                   at.stage,
                   {at.backward},
                   at.done});
  visit(HeldItem{"gradients for weights of",
                 at.backward,
                 Amount::GradientsForWeights,
                 at.stage,
                 {at.backward},
                 at.done});
}

/// Visits the memory outside the slots' permanent memory: only data in transfer between ranks.
/// Received data are copied into a slot when they are used.
template <class Visit>
void HeldItems::captured(const Around& at, const Visit& visit) const {
  using Kind = plan::InstructionKind;
  if (at.stage > 0 && at.backward >= 0) {
    const bool is_sent = copies() && !at.before_is_here;
    visit(HeldItem{
        "input gradient",
        at.backward,
        Amount::InputGradient,
        at.stage,
        {at.backward},
        {is_sent ? find(Kind::SendGradient, at) : around(at.stage - 1, at.microbatch).backward}});
  }
  if (!copies())
    return;
  const auto buffer = [&](Kind kind, Amount amount, int used_by) {
    const int receive = find(kind, at);
    visit(HeldItem{"receive buffer",
                   receive,
                   amount,
                   at.stage,
                   {receive, When::Start},
                   {used_by, When::Start}});
  };
  if (at.stage > 0 && !at.before_is_here)
    buffer(Kind::ReceiveActivation, Amount::ReceivedActivation, at.forward);
  if (!at.is_last && !at.after_is_here && at.backward >= 0) {
    buffer(Kind::ReceiveGradient, Amount::ReceivedGradient, at.backward);
    buffer(Kind::ReceiveGradient, Amount::ReceivedGradientForWeights, at.backward);
  }
}

/// Visits data passed between stages. By reference, the producer of an input gradient holds it
/// until the previous stage has used it. If data are copied, the producer holds it until it is
/// sent, and every receive has a buffer.
template <class Visit>
void HeldItems::local_transfers(const Around& at, const Visit& visit) const {
  using Kind = plan::InstructionKind;
  if (at.stage > 0 && at.backward >= 0)
    input_gradient(at, visit);
  if (!copies())
    return;
  const auto buffer = [&](Kind kind, Amount amount, EventPoint until) {
    const int receive = find(kind, at);
    visit(HeldItem{"receive buffer", receive, amount, at.stage, {receive, When::Start}, until});
  };
  if (at.stage > 0 && !at.before_is_here)
    buffer(Kind::ReceiveActivation, Amount::ReceivedActivation, at.done);
  if (!at.is_last && !at.after_is_here && at.backward >= 0) {
    buffer(Kind::ReceiveGradient, Amount::ReceivedGradient, used_by_last_layer(at, at.backward));
    buffer(Kind::ReceiveGradient, Amount::ReceivedGradientForWeights,
           used_by_last_layer(at, at.done.event));
  }
}

template <class Visit>
void HeldItems::input_gradient(const Around& at, const Visit& visit) const {
  const auto keep = [&](Amount amount, EventPoint until) {
    visit(HeldItem{"input gradient", at.backward, amount, at.stage, {at.backward}, until});
  };
  if (copies() && !at.before_is_here)
    return keep(Amount::InputGradient, {find(plan::InstructionKind::SendGradient, at)});
  const Around before = around(at.stage - 1, at.microbatch);
  if (before.weight_gradient < 0)
    return keep(Amount::InputGradient, used_by_last_layer(before, before.backward));
  keep(Amount::InputGradientOfInput, used_by_last_layer(before, before.backward));
  keep(Amount::InputGradientForWeights, used_by_last_layer(before, before.done.event));
}

}  // namespace pipewright::sim
