#pragma once

// One operation of a rank and its short text: an action of the Schedule as "2F0", or an operation
// that lowering adds, as "2SEND_F0". The properties of each kind of instruction are in one row of
// the table below.

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
  SendActivation,     // to the next stage
  ReceiveActivation,  // from the previous stage
  SendGradient,       // to the previous stage
  ReceiveGradient,    // from the next stage
  /// Reduce-scatters a microbatch's gradients over the copies of the stage (ZeRO stages 2 and 3)
  ScatterMicrobatch,
  ReduceTied,        // reduces the gradients of a tied weight over the ranks that have it
  ReduceGradients,   // all-reduces the gradients of all copies of the stage
  ScatterGradients,  // reduce-scatters them: each copy gets the sum of its shard (ZeRO stage 1)
  NormGradients,     // computes the global norm, which all ranks need before any of them steps
  OptimizerStep,     // steps only its shard if parameters are all-gathered afterwards
  GatherParameters,  // all-gathers the shards that the copies of the stage have stepped
  ShareLoss,         // gives all ranks the losses of the batch
  Unshard,           // all-gathers the stage's sharded parameters (ZeRO stage 3); occurs repeatedly
  Reshard,           // releases the gathered parameters
};

/// The resource that an instruction occupies while it runs.
enum class Role {
  Compute,     // the rank
  Send,        // a queue
  Receive,     // a queue
  Collective,  // none: it ends at once on all its ranks
};

/// The members of a collective.
enum class Group {
  None,    // not a collective
  Copies,  // all copies of the stage
  Tied,    // the ranks of a pipeline that hold a weight shared by stages
  All,     // every rank of every pipeline
};

/// Input that an instruction of a stage needs from elsewhere.
enum class Needs {
  Nothing,
  Activation,  // of the previous stage, or the receive of it
  Gradient,    // of the next stage, or the receive of it
  OtherEnd,    // the send
};

/// The properties of a kind of instruction.
struct InstructionTraits {
  std::string_view word{};     // name in the text, between stage and microbatch
  std::string_view meaning{};  // readable text before the microbatch: "forward of"
  Role role = Role::Compute;
  std::optional<ActionKind> action{};  // its action in a Schedule
  std::string_view deepspeed{};        // its DeepSpeed name; empty: none
  bool in_torch = true;                // torch has a name for it
  Work work = Work::None;
  Needs needs = Needs::Nothing;
  Payload payload = Payload::None;
  // For a transfer: the other end's distance in stages, and its kind.
  int towards = 0;
  std::optional<InstructionKind> other_end{};
  // For a collective: its members, and how often its ring passes all pieces around: twice for an
  // all-reduce, once for a reduce-scatter or all-gather.
  Group group = Group::None;
  int rounds = 0;
  bool waits_for_collectives = false;  // for the earlier ones in its rank's list
  /// Kinds whose recorded times replace missing recordings of this kind, the best match first.
  std::array<std::optional<InstructionKind>, 2> varies_like{};
  InstructionKind kind{};  // set when the table is built
};

/// Declares the properties of each kind of instruction. A kind without a row does not compile.
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
              .meaning = "recomputation of",
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
              .meaning = "reduce-scatters over its copies the gradients of",
              .role = Role::Collective,
              .in_torch = false,
              .payload = Payload::Gradients,
              .group = Group::Copies,
              .rounds = 1};
    case InstructionKind::ReduceTied:
      return {.word = "REDUCE_TIED",
              .meaning = "all-reduces the gradients of tied weights",
              .role = Role::Collective,
              .deepspeed = "ReduceTiedGrads",
              .in_torch = false,
              .payload = Payload::Tied,
              .group = Group::Tied,
              .rounds = 2};
    case InstructionKind::ReduceGradients:
      return {.word = "REDUCE_GRAD",
              .meaning = "all-reduces gradients over its copies",
              .role = Role::Collective,
              .deepspeed = "ReduceGrads",
              .payload = Payload::Gradients,
              .group = Group::Copies,
              .rounds = 2,
              .varies_like = {InstructionKind::ScatterGradients}};
    case InstructionKind::ScatterGradients:
      return {.word = "REDUCE_SCATTER",
              .meaning = "reduce-scatters gradients over its copies",
              .role = Role::Collective,
              .in_torch = false,
              .payload = Payload::Gradients,
              .group = Group::Copies,
              .rounds = 1,
              .varies_like = {InstructionKind::ReduceGradients}};
    case InstructionKind::NormGradients:
      return {.word = "NORM",
              .meaning = "computes the global gradient norm",
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
              .meaning = "all-gathers the parameters from its copies",
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
              .meaning = "all-gathers its sharded parameters",
              .role = Role::Collective,
              .payload = Payload::Parameters,
              .group = Group::Copies,
              .rounds = 1,
              .varies_like = {InstructionKind::GatherParameters}};
    case InstructionKind::Reshard:
      return {.word = "RESHARD", .meaning = "releases its gathered parameters"};
  }
  return {};
}

inline constexpr std::size_t instruction_kinds = [] {
  std::size_t count = 0;
  while (!declared_traits(static_cast<InstructionKind>(count)).word.empty())
    ++count;
  return count;
}();

/// The rows of all kinds, indexed by kind.
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

/// Number of kinds with a microbatch. They come first, so that tables by kind need no others. Other
/// instructions concern a whole stage, or the rank; the latter have the number of one of its
/// stages.
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
/// Returns true if instructions of this kind reduce the gradients of a stage's copies.
constexpr bool sums_copies(InstructionKind kind) {
  return traits_of(kind).payload == Payload::Gradients;
}
constexpr bool is_send(InstructionKind kind) { return traits_of(kind).role == Role::Send; }
constexpr bool is_receive(InstructionKind kind) { return traits_of(kind).role == Role::Receive; }

/// Returns true if instructions of this kind compute the gradient that the previous stage needs.
constexpr bool makes_input_gradient(InstructionKind kind) {
  return traits_of(kind).action && makes_input_gradient(*traits_of(kind).action);
}
/// Returns true if they add to the gradients of the weights.
constexpr bool makes_weight_gradient(InstructionKind kind) {
  return traits_of(kind).action && makes_weight_gradient(*traits_of(kind).action);
}
/// Returns true if instructions of this kind belong to the backward of a microbatch, including R.
constexpr bool is_of_backward(InstructionKind kind) {
  return traits_of(kind).action && traits_of(kind).work != Work::Forward;
}
/// Returns true if they recompute a forward.
constexpr bool runs_forward_again(InstructionKind kind) {
  return traits_of(kind).work == Work::Rerun;
}
/// Returns true if they have additional waits for collectives: collectives themselves, which wait
/// for all members, and kinds that wait for earlier collectives.
constexpr bool has_collective_waits(InstructionKind kind) {
  return is_collective(kind) || traits_of(kind).waits_for_collectives;
}
/// Returns the receive that brings the input from another stage, or nothing for kinds without such
/// input. The other end of that receive is also the kind of send for their own result.
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
/// Returns the kinds that can produce the data of a receive; one of them is on the sending stage.
constexpr std::array<InstructionKind, 2> makers_for(InstructionKind receive) {
  if (receive == InstructionKind::ReceiveActivation)
    return {InstructionKind::Forward, InstructionKind::Forward};
  return {InstructionKind::Backward, InstructionKind::InputGradient};
}
InstructionKind instruction_kind(ActionKind kind);

struct Instruction {
  InstructionKind kind = InstructionKind::Forward;
  int stage = 0;
  int microbatch = -1;  // -1 if the instruction concerns the whole stage
  /// The stage's buffer of the microbatch, from its first use to its last; -1 without microbatch.
  int slot = -1;
  bool fused_with_next = false;  // as in Action: both start together and overlap
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// Identifies an instruction in its Program; the slot does not.
using InstructionKey = std::tuple<InstructionKind, int, int>;
inline InstructionKey key_of(const Instruction& i) { return {i.kind, i.stage, i.microbatch}; }

/// Returns the text without the slot: "0SEND_F2".
std::string to_string(const Instruction& instruction);
/// Returns the text with the slot: "0SEND_F2#1".
std::string with_slot(const Instruction& instruction);
std::optional<Instruction> parse_instruction(std::string_view text);
/// Appends the instruction in a cell, or the two of a fused pair "(1F2;0B1)OVERLAP_F_B". Returns
/// false if the text is neither.
bool append_cell(std::string_view cell, std::vector<Instruction>& instructions);

/// Returns the stage at the other end of a transfer.
inline int peer_stage(const Instruction& transfer) {
  return transfer.stage + traits_of(transfer.kind).towards;
}
/// Returns the operation that completes a transfer: the receive of a send, the send of a receive.
inline Instruction counterpart(const Instruction& transfer) {
  return {traits_of(transfer.kind).other_end.value(), peer_stage(transfer), transfer.microbatch, -1,
          transfer.fused_with_next};
}

}  // namespace pipewright::plan
