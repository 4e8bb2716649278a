#pragma once

// One thing that a rank does, and its short text: an action of the Schedule as "2F0", or what
// lowering adds, as "2SEND_F0". What is true of a kind of instruction stands in one row here.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "pipewright/plan/costs/work.hpp"
#include "pipewright/plan/schedules/action.hpp"

namespace pipewright::plan {

enum class InstructionKind {
  Load,  // the first stage's input, the last stage's target
  Forward,
  Backward,
  InputGradient,
  WeightGradient,
  Recompute,
  SendActivation,     // to the stage after
  ReceiveActivation,  // from the stage before
  SendGradient,       // to the stage before
  ReceiveGradient,    // from the stage after
  ScatterMicrobatch,  // sums a microbatch's gradients over the copies of the stage: each gets the
                      // sum of its shard (ZeRO stages 2 and 3)
  ReduceTied,        // sums the gradients of the weights that stages share, over the ranks with one
  ReduceGradients,   // sums the gradients of all copies of the stage
  ScatterGradients,  // the same, but each copy gets the sum of its shard alone (ZeRO stage 1)
  NormGradients,     // the global norm, which all ranks must know before any of them steps
  OptimizerStep,     // steps its shard alone where parameters are gathered afterwards
  GatherParameters,  // each copy of the stage gets the shards that the others have stepped
  ShareLoss,         // all ranks get the losses of the batch
  Unshard,           // gathers the stage's sharded parameters (ZeRO stage 3), again and again
  Reshard,           // lets them go again
};

/// What an instruction holds while it runs.
enum class Role {
  Compute,     // the rank
  Send,        // a queue
  Receive,     // a queue
  Collective,  // nothing: it ends on all its ranks at once
};

/// Who takes part in a collective.
enum class Group {
  None,    // it is none
  Copies,  // all copies of the stage
  Tied,    // the ranks of a pipeline that hold a weight which stages share
  All,     // every rank of every pipeline
};

/// What an instruction of a stage takes in from elsewhere.
enum class Needs {
  Nothing,
  Activation,  // from the stage before, or the receive of it
  Gradient,    // from the stage after, or the receive of it
  OtherEnd,    // the send
};

struct InstructionTraits {
  std::string_view word{};     // between stage and microbatch
  std::string_view meaning{};  // in words, before the microbatch: "forward of"
  Role role = Role::Compute;
  std::optional<ActionKind> action{};  // which a Schedule has for it
  std::string_view deepspeed{};        // its name there; empty: none
  bool in_torch = true;                // torch has a word for it
  Work work = Work::None;
  Needs needs = Needs::Nothing;
  Payload payload = Payload::None;
  // A transfer has the other end so many stages further on, where an instruction of that kind
  // completes it.
  int towards = 0;
  std::optional<InstructionKind> other_end{};
  // A collective says who takes part, and how often its ring passes on all pieces: a sum does so
  // twice, what only scatters or gathers once.
  Group group = Group::None;
  int rounds = 0;
  bool waits_for_collectives = false;  // those that its rank has before it in the list
  /// Kinds whose recorded times stand in where none of this kind were recorded, the nearest first.
  std::array<std::optional<InstructionKind>, 2> varies_like{};
  InstructionKind kind{};  // the row's own, set where the table is made
};

/// All that is true of a kind of instruction: a kind without a row does not compile.
constexpr InstructionTraits declared_traits(InstructionKind kind) {
  switch (kind) {
    case InstructionKind::Load:
      return {.word = "LOAD",
              .meaning = "loads",
              .deepspeed = "LoadMicroBatch",
              .in_torch = false,
              .work = Work::Load};
    case InstructionKind::Forward:
      return {.word = "F",
              .meaning = "forward of",
              .action = ActionKind::Forward,
              .deepspeed = "ForwardPass",
              .work = Work::Forward,
              .needs = Needs::Activation};
    case InstructionKind::Backward:
      return {.word = "B",
              .meaning = "backward of",
              .action = ActionKind::Backward,
              .deepspeed = "BackwardPass",
              .work = Work::Backward,
              .needs = Needs::Gradient,
              .varies_like = {InstructionKind::InputGradient, InstructionKind::WeightGradient}};
    case InstructionKind::InputGradient:
      return {.word = "I",
              .meaning = "input gradient of",
              .action = ActionKind::InputGradient,
              .work = Work::InputGradient,
              .needs = Needs::Gradient,
              .varies_like = {InstructionKind::Backward}};
    case InstructionKind::WeightGradient:
      return {.word = "W",
              .meaning = "weight gradient of",
              .action = ActionKind::WeightGradient,
              .work = Work::WeightGradient,
              .varies_like = {InstructionKind::Backward}};
    case InstructionKind::Recompute:
      return {.word = "R",
              .meaning = "computes again",
              .action = ActionKind::Recompute,
              .work = Work::Rerun,
              .varies_like = {InstructionKind::Forward}};
    case InstructionKind::SendActivation:
      return {.word = "SEND_F",
              .meaning = "sends the activation of",
              .role = Role::Send,
              .deepspeed = "SendActivation",
              .payload = Payload::Activation,
              .towards = 1,
              .other_end = InstructionKind::ReceiveActivation};
    case InstructionKind::ReceiveActivation:
      return {.word = "RECV_F",
              .meaning = "receives the activation of",
              .role = Role::Receive,
              .deepspeed = "RecvActivation",
              .needs = Needs::OtherEnd,
              .towards = -1,
              .other_end = InstructionKind::SendActivation};
    case InstructionKind::SendGradient:
      return {.word = "SEND_B",
              .meaning = "sends the gradient of",
              .role = Role::Send,
              .deepspeed = "SendGrad",
              .payload = Payload::InputGradient,
              .towards = -1,
              .other_end = InstructionKind::ReceiveGradient};
    case InstructionKind::ReceiveGradient:
      return {.word = "RECV_B",
              .meaning = "receives the gradient of",
              .role = Role::Receive,
              .deepspeed = "RecvGrad",
              .needs = Needs::OtherEnd,
              .towards = 1,
              .other_end = InstructionKind::SendGradient};
    case InstructionKind::ScatterMicrobatch:
      return {.word = "SCATTER",
              .meaning = "sums the gradients over its copies, a shard for each, of",
              .role = Role::Collective,
              .in_torch = false,
              .payload = Payload::Gradients,
              .group = Group::Copies,
              .rounds = 1};
    case InstructionKind::ReduceTied:
      return {.word = "REDUCE_TIED",
              .meaning = "sums the gradients of shared weights",
              .role = Role::Collective,
              .deepspeed = "ReduceTiedGrads",
              .in_torch = false,
              .payload = Payload::Tied,
              .group = Group::Tied,
              .rounds = 2};
    case InstructionKind::ReduceGradients:
      return {.word = "REDUCE_GRAD",
              .meaning = "sums gradients over its copies",
              .role = Role::Collective,
              .deepspeed = "ReduceGrads",
              .payload = Payload::Gradients,
              .group = Group::Copies,
              .rounds = 2,
              .varies_like = {InstructionKind::ScatterGradients}};
    case InstructionKind::ScatterGradients:
      return {.word = "REDUCE_SCATTER",
              .meaning = "sums gradients, a shard for each copy",
              .role = Role::Collective,
              .in_torch = false,
              .payload = Payload::Gradients,
              .group = Group::Copies,
              .rounds = 1,
              .varies_like = {InstructionKind::ReduceGradients}};
    case InstructionKind::NormGradients:
      return {.word = "NORM",
              .meaning = "finds the norm of all gradients",
              .role = Role::Collective,
              .in_torch = false,
              .payload = Payload::Numbers,
              .group = Group::All,
              .rounds = 1};
    case InstructionKind::OptimizerStep:
      return {.word = "STEP",
              .meaning = "optimizer step",
              .deepspeed = "OptimizerStep",
              .in_torch = false,
              .work = Work::OptimizerStep,
              .waits_for_collectives = true};
    case InstructionKind::GatherParameters:
      return {.word = "GATHER",
              .meaning = "gathers the parameters of its copies",
              .role = Role::Collective,
              .in_torch = false,
              .payload = Payload::Parameters,
              .group = Group::Copies,
              .rounds = 1,
              .varies_like = {InstructionKind::Unshard}};
    case InstructionKind::ShareLoss:
      return {.word = "LOSS",
              .meaning = "shares the loss",
              .role = Role::Collective,
              .in_torch = false,
              .payload = Payload::Numbers,
              .group = Group::All,
              .rounds = 1};
    case InstructionKind::Unshard:
      return {.word = "UNSHARD",
              .meaning = "gathers its sharded parameters",
              .role = Role::Collective,
              .payload = Payload::Parameters,
              .group = Group::Copies,
              .rounds = 1,
              .varies_like = {InstructionKind::GatherParameters}};
    case InstructionKind::Reshard:
      return {.word = "RESHARD", .meaning = "lets its gathered parameters go"};
  }
  return {};
}

inline constexpr std::size_t instruction_kinds = [] {
  std::size_t count = 0;
  while (!declared_traits(static_cast<InstructionKind>(count)).word.empty())
    ++count;
  return count;
}();

/// By kind.
inline constexpr auto instruction_traits = [] {
  std::array<InstructionTraits, instruction_kinds> rows;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const auto kind = static_cast<InstructionKind>(at);
    rows[at] = declared_traits(kind);
    rows[at].kind = kind;
  }
  return rows;
}();

constexpr const InstructionTraits& traits_of(InstructionKind kind) {
  return instruction_traits[static_cast<std::size_t>(kind)];
}

/// Kinds with a microbatch come first, so that tables by kind need no others. The rest concern a
/// whole stage, or the rank: then they bear the number of one of its stages.
inline constexpr std::size_t kinds_with_microbatch =
    static_cast<std::size_t>(InstructionKind::ScatterMicrobatch) + 1;

static_assert([] {
  for (const InstructionTraits& row : instruction_traits) {
    const bool is_transfer = row.role == Role::Send || row.role == Role::Receive;
    if (row.meaning.empty() || is_transfer != row.other_end.has_value() ||
        (row.role == Role::Collective) != (row.group != Group::None && row.rounds > 0))
      return false;
  }
  return true;
}());

constexpr bool has_microbatch(InstructionKind kind) {
  return static_cast<std::size_t>(kind) < kinds_with_microbatch;
}
constexpr bool is_compute(InstructionKind kind) { return traits_of(kind).role == Role::Compute; }
constexpr bool is_collective(InstructionKind kind) {
  return traits_of(kind).role == Role::Collective;
}
constexpr Group group_of(InstructionKind kind) { return traits_of(kind).group; }
/// Whether instructions of this kind sum the gradients of a stage's copies.
constexpr bool sums_copies(InstructionKind kind) {
  return traits_of(kind).payload == Payload::Gradients;
}
constexpr bool is_send(InstructionKind kind) { return traits_of(kind).role == Role::Send; }
constexpr bool is_receive(InstructionKind kind) { return traits_of(kind).role == Role::Receive; }

/// Whether instructions of this kind make the gradient that the stage before waits for.
constexpr bool makes_input_gradient(InstructionKind kind) {
  return traits_of(kind).action && makes_input_gradient(*traits_of(kind).action);
}
/// Whether they add to the gradients of the weights.
constexpr bool makes_weight_gradient(InstructionKind kind) {
  return traits_of(kind).action && makes_weight_gradient(*traits_of(kind).action);
}
/// Whether instructions of this kind belong to the backward of a microbatch, R among them.
constexpr bool is_of_backward(InstructionKind kind) {
  return traits_of(kind).action && traits_of(kind).work != Work::Forward;
}
/// Whether they run a forward that has been run before.
constexpr bool runs_forward_again(InstructionKind kind) {
  return traits_of(kind).work == Work::Rerun;
}
/// Whether they have waits of their own for collectives: one of these for all that takes part, and
/// what waits for those before it.
constexpr bool has_collective_waits(InstructionKind kind) {
  return is_collective(kind) || traits_of(kind).waits_for_collectives;
}
/// The receive that brings what they take in from another stage; nothing for those that take in
/// nothing. Its other end is the send that takes their own result on.
constexpr std::optional<InstructionKind> receive_for(InstructionKind kind) {
  switch (traits_of(kind).needs) {
    case Needs::Activation:
      return InstructionKind::ReceiveActivation;
    case Needs::Gradient:
      return InstructionKind::ReceiveGradient;
    case Needs::Nothing:
    case Needs::OtherEnd:
      return {};
  }
  return {};
}
/// Which kinds make what a receive brings; one of them stands on the stage that it is from.
constexpr std::array<InstructionKind, 2> makers_for(InstructionKind receive) {
  if (receive == InstructionKind::ReceiveActivation)
    return {InstructionKind::Forward, InstructionKind::Forward};
  return {InstructionKind::Backward, InstructionKind::InputGradient};
}
InstructionKind instruction_kind(ActionKind kind);

struct Instruction {
  InstructionKind kind = InstructionKind::Forward;
  int stage = 0;
  int microbatch = -1;  // -1 where an instruction concerns the whole stage
  int slot = -1;        // the stage's buffer that the microbatch holds from its first use to its
                        // last; -1 without microbatch
  bool fused_with_next = false;  // as in Action: both start together and overlap
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// What names an instruction in its Program; the slot does not.
using InstructionKey = std::tuple<InstructionKind, int, int>;
inline InstructionKey key_of(const Instruction& i) { return {i.kind, i.stage, i.microbatch}; }

/// Without the slot: "0SEND_F2".
std::string to_string(const Instruction& instruction);
/// With it: "0SEND_F2#1".
std::string with_slot(const Instruction& instruction);
std::optional<Instruction> parse_instruction(std::string_view text);
/// Appends an instruction, or the two of a fused pair "(1F2;0B1)OVERLAP_F_B"; false when the text
/// is neither.
bool append_cell(std::string_view cell, std::vector<Instruction>& instructions);

/// The stage at the other end of a transfer.
inline int peer_stage(const Instruction& transfer) {
  return transfer.stage + traits_of(transfer.kind).towards;
}
/// The operation that completes a transfer: the receive of a send, the send of a receive.
inline Instruction counterpart(const Instruction& transfer) {
  return {traits_of(transfer.kind).other_end.value(), peer_stage(transfer), transfer.microbatch, -1,
          transfer.fused_with_next};
}

}  // namespace pipewright::plan
