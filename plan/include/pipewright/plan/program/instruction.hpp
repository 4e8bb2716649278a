#pragma once

// One thing that a rank does, and its short text: an action of the Schedule as "2F0", or what
// lowering adds, as "2SEND_F0". What is true of a kind of instruction stands in one row here.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

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
  ReduceTied,        // sums the gradients of the weights that stages share, over the ranks with one
  ReduceGradients,   // sums the gradients of all copies of the stage
  ScatterGradients,  // … of which each copy gets its shard alone (ZeRO stage 1)
  NormGradients,     // the global norm, which all ranks must know before any of them steps
  OptimizerStep,     // of its shard, where the stage's parameters are gathered afterwards
  GatherParameters,  // each copy of the stage gets the shards that the others have stepped
  ShareLoss,         // all ranks get the losses of the batch
  Unshard,           // gathers the stage's sharded parameters
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

struct InstructionTraits {
  InstructionKind kind;
  std::string_view word;  // between stage and microbatch
  Role role;
  bool has_microbatch;                    // or else it concerns the whole stage, or the rank: then
                                          // it bears the number of one of its stages
  std::optional<ActionKind> action = {};  // of a Schedule
  std::string_view deepspeed = {};        // its name there; empty: none
  bool in_torch = true;                   // torch has a word for it
  Group group = Group::None;
};

inline constexpr auto instruction_traits = std::to_array<InstructionTraits>({
    {InstructionKind::Load, "LOAD", Role::Compute, true, {}, "LoadMicroBatch", false},
    {InstructionKind::Forward, "F", Role::Compute, true, ActionKind::Forward, "ForwardPass"},
    {InstructionKind::Backward, "B", Role::Compute, true, ActionKind::Backward, "BackwardPass"},
    {InstructionKind::InputGradient, "I", Role::Compute, true, ActionKind::InputGradient},
    {InstructionKind::WeightGradient, "W", Role::Compute, true, ActionKind::WeightGradient},
    {InstructionKind::Recompute, "R", Role::Compute, true, ActionKind::Recompute},
    {InstructionKind::SendActivation, "SEND_F", Role::Send, true, {}, "SendActivation"},
    {InstructionKind::ReceiveActivation, "RECV_F", Role::Receive, true, {}, "RecvActivation"},
    {InstructionKind::SendGradient, "SEND_B", Role::Send, true, {}, "SendGrad"},
    {InstructionKind::ReceiveGradient, "RECV_B", Role::Receive, true, {}, "RecvGrad"},
    {InstructionKind::ReduceTied,
     "REDUCE_TIED",
     Role::Collective,
     false,
     {},
     "ReduceTiedGrads",
     false,
     Group::Tied},
    {InstructionKind::ReduceGradients,
     "REDUCE_GRAD",
     Role::Collective,
     false,
     {},
     "ReduceGrads",
     true,
     Group::Copies},
    {InstructionKind::ScatterGradients,
     "REDUCE_SCATTER",
     Role::Collective,
     false,
     {},
     "",
     false,
     Group::Copies},
    {InstructionKind::NormGradients, "NORM", Role::Collective, false, {}, "", false, Group::All},
    {InstructionKind::OptimizerStep, "STEP", Role::Compute, false, {}, "OptimizerStep", false},
    {InstructionKind::GatherParameters,
     "GATHER",
     Role::Collective,
     false,
     {},
     "",
     false,
     Group::Copies},
    {InstructionKind::ShareLoss, "LOSS", Role::Collective, false, {}, "", false, Group::All},
    {InstructionKind::Unshard, "UNSHARD", Role::Compute, false},
    {InstructionKind::Reshard, "RESHARD", Role::Compute, false},
});

constexpr const InstructionTraits& traits_of(InstructionKind kind) {
  return instruction_traits[static_cast<std::size_t>(kind)];
}

/// Kinds with a microbatch come first, so that tables by kind need no others.
inline constexpr std::size_t kinds_with_microbatch =
    static_cast<std::size_t>(InstructionKind::ReceiveGradient) + 1;

// A kind without its row, or in another place, does not compile.
static_assert([] {
  for (std::size_t row = 0; row < instruction_traits.size(); ++row)
    if (instruction_traits[row].kind != static_cast<InstructionKind>(row) ||
        instruction_traits[row].has_microbatch != (row < kinds_with_microbatch) ||
        (instruction_traits[row].role == Role::Collective) !=
            (instruction_traits[row].group != Group::None))
      return false;
  return instruction_traits.back().kind == InstructionKind::Reshard;
}());

constexpr bool has_microbatch(InstructionKind kind) { return traits_of(kind).has_microbatch; }
constexpr bool is_compute(InstructionKind kind) { return traits_of(kind).role == Role::Compute; }
constexpr bool is_collective(InstructionKind kind) {
  return traits_of(kind).role == Role::Collective;
}
constexpr Group group_of(InstructionKind kind) { return traits_of(kind).group; }
/// Whether instructions of this kind sum the gradients of a stage's copies.
constexpr bool sums_copies(InstructionKind kind) {
  return kind == InstructionKind::ReduceGradients || kind == InstructionKind::ScatterGradients;
}
constexpr bool is_send(InstructionKind kind) { return traits_of(kind).role == Role::Send; }
constexpr bool is_receive(InstructionKind kind) { return traits_of(kind).role == Role::Receive; }

/// Whether instructions of this kind make the gradient that the stage before waits for.
constexpr bool makes_input_gradient(InstructionKind kind) {
  return traits_of(kind).action && makes_input_gradient(*traits_of(kind).action);
}
/// … or add to the gradients of the weights.
constexpr bool makes_weight_gradient(InstructionKind kind) {
  return traits_of(kind).action && makes_weight_gradient(*traits_of(kind).action);
}
InstructionKind instruction_kind(ActionKind kind);

struct Instruction {
  InstructionKind kind = InstructionKind::Forward;
  int stage = 0;
  int microbatch = -1;  // -1 where an instruction concerns the whole stage
  int slot = -1;        // of the stage's buffers, held from the first use of the microbatch to the
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
int peer_stage(const Instruction& transfer);
/// The operation that completes a transfer: the receive of a send, the send of a receive.
Instruction counterpart(const Instruction& transfer);

}  // namespace pipewright::plan
