#pragma once

// The rules of memory: which bytes a rank holds, from when to when. Everything that is said about
// memory is read from this one list.

#include <cstdint>

#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/instruction_index.hpp"
#include "pipewright/sim/memory.hpp"
#include "pipewright/sim/step_costs.hpp"
#include "pipewright/sim/structure.hpp"

namespace pipewright::sim {

/// How many bytes, of one stage and microbatch.
enum class Amount : std::uint8_t {
  Loaded,
  Activation,
  ActivationOfInputGradient,   // its part that the input gradient frees
  ActivationOfWeightGradient,  // the rest
  ActivationLessOutput,
  Output,
  ForwardTransient,   // most that a forward needs beside what it keeps
  BackwardTransient,  // … a backward
  InputGradientTransient,
  WeightGradientTransient,
  // Of a microbatch that runs again:
  RerunKept,  // by its forward, beside the output
  RerunForwardTransient,
  RemadeOfInputGradient,   // what R makes and the input gradient frees
  RemadeOfWeightGradient,  // … the rest
  RemadeOfWeightGradientLessOutput,
  RerunTransient,  // most that R needs beside what it makes
  RerunBackwardTransient,
  RerunInputGradientTransient,
  RerunForWeights,  // what an input gradient makes again for the weight gradient
  GradientsForWeights,
  InputGradient,       // made for the stage before
  ReceivedActivation,  // as large as the stage before sends it
  ReceivedGradient,    // as large as the stage after makes it
  GradientsAside,      // of all the stage's parameters; the only amount that many share an end of
};

/// The amount for a microbatch `length` times as long as the one that was measured. Sums of parts
/// are exact: rounding is done before.
std::int64_t bytes_of(Amount amount, const StepCosts& costs, int stage, double length);

/// The start of an event, or else its end; of a transfer, when it lets go of its queue.
struct Moment {
  int event = -1;
  bool starts = false;
};

struct HeldItem {
  const char* name;  // "activations", to which `named_by` is added
  int named_by;      // an event
  Amount amount;
  int stage;
  Moment from;
  Moment until;
};

class HeldItems {
 public:
  HeldItems(const Structure& structure, Holding holding);

  /// Calls `visit(item)` for all that the rank of this stage and microbatch holds for them.
  template <class Visit>
  void for_each(int stage, int microbatch, const Visit& visit) const;

 private:
  /// The events of one stage and microbatch; -1 where there is none.
  struct Around {
    int stage, microbatch;
    int load, forward, recompute;
    int backward;         // B, or else I
    int weight_gradient;  // W, where the backward is split
    bool before_is_here;  // the stage before is on the same rank
    bool after_is_here;   // … the stage after
    bool is_last;         // no stage after
    Moment done;          // nothing of the microbatch is needed any more
  };

  void find_gradients_aside(const Structure& structure);
  Around around(int stage, int microbatch) const;
  template <class Visit>
  void activations(const Around& at, const Visit& visit) const;
  template <class Visit>
  void activations_in_two_parts(const Around& at, const Visit& visit) const;
  template <class Visit>
  void recomputed(const Around& at, const Visit& visit) const;
  template <class Visit>
  void transients(const Around& at, const Visit& visit) const;
  template <class Visit>
  void hand_overs(const Around& at, const Visit& visit) const;

  int find(plan::InstructionKind kind, const Around& at) const {
    return index_.find(kind, at.stage, at.microbatch);
  }
  bool copies() const { return holding_.hand_over == plan::HandOver::Copy; }
  std::size_t place(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(program_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }

  const plan::Program& program_;
  const Holding holding_;
  const bool forward_only_;
  const plan::InstructionIndex index_;  // of events
  /// The event at whose end gradients that were set aside are added; -1 where none were.
  std::vector<int> adds_gradients_;
};

template <class Visit>
void HeldItems::for_each(int stage, int microbatch, const Visit& visit) const {
  const Around at = around(stage, microbatch);
  if (at.forward < 0)
    return;
  if (at.load >= 0)
    visit(HeldItem{
        stage == 0 ? "input" : "target", at.load, Amount::Loaded, stage, {at.load, true}, at.done});
  if (at.recompute >= 0)
    recomputed(at, visit);
  else
    activations(at, visit);
  transients(at, visit);
  hand_overs(at, visit);
  if (const int adding = adds_gradients_[place(stage, microbatch)]; adding >= 0)
    visit(HeldItem{"gradients set aside",
                   at.done.event,
                   Amount::GradientsAside,
                   at.stage,
                   {at.done.event, false},
                   {adding, false}});
}

/// What a forward keeps. Without a backward it is let go of at once, but for what is being sent.
template <class Visit>
void HeldItems::activations(const Around& at, const Visit& visit) const {
  const Moment start{at.forward, true};
  if (forward_only_ && copies() && !at.is_last && !at.after_is_here) {
    const int send = find(plan::InstructionKind::SendActivation, at);
    visit(HeldItem{"activations", at.forward, Amount::ActivationLessOutput, at.stage, start,
                   at.done});
    visit(HeldItem{"output", at.forward, Amount::Output, at.stage, start, {send, false}});
  } else if (at.weight_gradient >= 0) {
    visit(HeldItem{"activations",
                   at.forward,
                   Amount::ActivationOfInputGradient,
                   at.stage,
                   start,
                   {at.backward, false}});
    visit(HeldItem{"activations", at.forward, Amount::ActivationOfWeightGradient, at.stage, start,
                   at.done});
  } else {
    visit(HeldItem{"activations", at.forward, Amount::Activation, at.stage, start, at.done});
  }
}

/// A forward that is run again keeps its output, as long as the stage after reads it here, and the
/// inputs of the layers that run again at a time; that of the stage is with its maker, or in the
/// receive buffer. R brings the activations of the last of them. What the one input gradient frees
/// of those, a backward in one go frees with all else at its end, which is when it ends too.
template <class Visit>
void HeldItems::recomputed(const Around& at, const Visit& visit) const {
  const Moment start{at.forward, true};
  const Moment again{at.recompute, true};
  const bool sent_away = copies() && !at.is_last && !at.after_is_here;
  const Moment output_until =
      sent_away ? Moment{find(plan::InstructionKind::SendActivation, at), false} : at.done;
  visit(HeldItem{"output", at.forward, Amount::Output, at.stage, start, output_until});
  visit(HeldItem{"inputs of layers", at.forward, Amount::RerunKept, at.stage, start, at.done});
  visit(HeldItem{"activations",
                 at.recompute,
                 Amount::RemadeOfInputGradient,
                 at.stage,
                 again,
                 {at.backward, false}});
  visit(HeldItem{
      "activations", at.recompute,
      sent_away ? Amount::RemadeOfWeightGradient : Amount::RemadeOfWeightGradientLessOutput,
      at.stage, again, at.done});
}

template <class Visit>
void HeldItems::transients(const Around& at, const Visit& visit) const {
  const auto beside = [&](int event, Amount amount) {
    if (event >= 0)
      visit(HeldItem{"transient of", event, amount, at.stage, {event, true}, {event, false}});
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
                   {at.backward, false},
                   at.done});
  visit(HeldItem{"gradients for weights of",
                 at.backward,
                 Amount::GradientsForWeights,
                 at.stage,
                 {at.backward, false},
                 at.done});
}

/// By reference, the maker of an input gradient holds it until the stage before has used it.
/// Copied, the maker holds it until it is sent, and every receive has a buffer.
template <class Visit>
void HeldItems::hand_overs(const Around& at, const Visit& visit) const {
  using Kind = plan::InstructionKind;
  if (at.stage > 0 && at.backward >= 0) {
    const bool sent_away = copies() && !at.before_is_here;
    const Around before = around(at.stage - 1, at.microbatch);
    visit(HeldItem{"input gradient",
                   at.backward,
                   Amount::InputGradient,
                   at.stage,
                   {at.backward, false},
                   {sent_away ? find(Kind::SendGradient, at) : before.backward, false}});
  }
  if (!copies())
    return;
  if (at.stage > 0 && !at.before_is_here) {
    const int receive = find(Kind::ReceiveActivation, at);
    visit(HeldItem{
        "receive buffer", receive, Amount::ReceivedActivation, at.stage, {receive, true}, at.done});
  }
  if (!at.is_last && !at.after_is_here && at.backward >= 0) {
    const int receive = find(Kind::ReceiveGradient, at);
    visit(HeldItem{"receive buffer",
                   receive,
                   Amount::ReceivedGradient,
                   at.stage,
                   {receive, true},
                   {at.backward, false}});
  }
}

}  // namespace pipewright::sim
