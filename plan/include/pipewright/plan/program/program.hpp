#pragma once

// A Program is a Schedule lowered to all that a rank does: load, compute, send, receive, step. The
// simulator times exactly this value and the executor runs exactly this value.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/partition/placement.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::plan {

/// Which operations share one in-order queue: those of a directed pair of ranks, of a pair of ranks
/// in both directions, or all of a rank.
enum class CommunicatorLayout { Edge, Pair, Rank };

/// When a transfer may start: once both ends have reached it, or once the sender has.
enum class TransferMode { Rendezvous, Eager };

struct Program {
  int microbatches = 0;
  Placement placement;
  CommunicatorLayout communicators = CommunicatorLayout::Edge;
  TransferMode transfers = TransferMode::Eager;
  bool blocking = false;  // true: a rank computes nothing during a transfer
  /// Whether weights are updated as gradients come, without a flush (PipeDream): a stage then steps
  /// several times, and a forward may use older weights than the newest.
  bool asynchronous = false;
  int step_every = 0;  // backwards of a stage for each of its steps, where that is so; else 0
  /// How many layers run again at a time, where the Program has a Recompute. The forward keeps only
  /// the input of each such group of layers; R runs the last group again, and the backward runs the
  /// others, each when its turn comes. 0: R runs the whole stage again at once.
  int recompute_layers = 0;
  /// Whether every backward computes again what its layers call large to keep and quick to compute
  /// (attention; Korthikanti et al., 2205.05198).
  bool selective_recompute = false;
  std::vector<std::vector<Instruction>> ranks;
  friend bool operator==(const Program&, const Program&) = default;
};

inline int stage_count(const Program& program) { return program.placement.stage_count(); }
/// Whether both stages exist and a microbatch passes them on different ranks.
inline bool crosses_ranks(const Program& program, int stage, int other, int microbatch) {
  if (other < 0 || other >= stage_count(program))
    return false;
  const Placement& placement = program.placement;
  return placement.rank_of(stage, microbatch) != placement.rank_of(other, microbatch);
}
/// The rank at the other end of a transfer.
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
/// Reads what `to_json` has written. That it can run is for `validate` to prove.
Program program_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
