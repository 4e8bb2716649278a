#pragma once

// A Program is a Schedule lowered to everything that a rank does: load, compute, send, receive,
// step. The simulator times exactly this value, and the executor runs exactly this value.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/partition/placement.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::plan {

/// The transfers that share one in-order queue: those of a directed pair of ranks, of a pair of
/// ranks in both directions, or all of a rank.
enum class CommunicatorLayout { Edge, Pair, Rank };

/// When a transfer may start: once both ends have reached it, or once the sender has.
enum class TransferMode { Rendezvous, Eager };

struct Program {
  int microbatches = 0;
  Placement placement;
  CommunicatorLayout communicators = CommunicatorLayout::Edge;
  TransferMode transfers = TransferMode::Eager;
  bool blocking = false;  // true: a rank computes nothing during a transfer
  /// True if weights are updated as gradients arrive, without a flush (PipeDream). A stage then
  /// steps several times, and a forward may use older weights than the newest.
  bool asynchronous = false;
  int step_every = 0;  // backwards of a stage per optimizer step if asynchronous; else 0
  /// Number of layers per recomputed group, if the Program has a Recompute. The forward keeps only
  /// the input of each group; R recomputes the last group, and the backward recomputes each of the
  /// others when it reaches it. 0: R recomputes the whole stage at once.
  int recompute_layers = 0;
  /// True if every backward recomputes the activations that its layers declare large but quick to
  /// compute (attention; Korthikanti et al., 2205.05198).
  bool selective_recompute = false;
  std::vector<std::vector<Instruction>> ranks;
  friend bool operator==(const Program&, const Program&) = default;
};

inline int stage_count(const Program& program) { return program.placement.stage_count(); }
/// Returns true if both stages exist and are on different ranks for this microbatch.
inline bool crosses_ranks(const Program& program, int stage, int other, int microbatch) {
  if (other < 0 || other >= stage_count(program))
    return false;
  const Placement& placement = program.placement;
  return placement.rank_of(stage, microbatch) != placement.rank_of(other, microbatch);
}
/// Returns the rank at the other end of a transfer.
inline int peer_rank(const Program& program, const Instruction& transfer) {
  return program.placement.rank_of(peer_stage(transfer), transfer.microbatch);
}
const std::vector<std::string>& communicator_layouts();  // edge, pair, rank
const std::vector<std::string>& transfer_modes();        // rendezvous, eager
std::string to_string(CommunicatorLayout layout);
std::string to_string(TransferMode mode);
CommunicatorLayout parse_communicator_layout(const std::string& name);
TransferMode parse_transfer_mode(const std::string& name);

Json to_json(const Program& program);
/// Reads the output of `to_json`. `validate` must still prove that the Program can run.
Program program_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
