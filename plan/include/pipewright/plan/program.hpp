#pragma once

// A Program is a Schedule lowered to all that a rank does: load, compute, send, receive, step. The
// simulator times exactly this value and the executor runs exactly this value.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/instruction.hpp"
#include "pipewright/plan/json.hpp"
#include "pipewright/plan/placement.hpp"

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
  bool blocking = false;  // true: a transfer holds the compute lane
  /// Whether weights are updated as gradients come, without a flush (PipeDream): a stage then steps
  /// several times, and a forward may use older weights than the newest.
  bool asynchronous = false;
  int step_every = 0;  // backwards of a stage for each of its steps, where that is so; else 0
  /// What a Recompute does: a forward before it keeps the inputs of so many layers at a time alone;
  /// R runs the last of them again, the backward the others, each when its turn comes. 0: the whole
  /// stage at once.
  int recompute_layers = 0;
  /// Whether every backward computes again what its layers call large to keep and quick to compute
  /// (attention; Korthikanti et al., 2205.05198).
  bool selective_recompute = false;
  std::vector<std::vector<Instruction>> ranks;
  friend bool operator==(const Program&, const Program&) = default;
};

int stage_count(const Program& program);
/// Whether both stages exist and a microbatch passes them on different ranks.
bool crosses_ranks(const Program& program, int stage, int other, int microbatch);
/// The rank at the other end of a transfer.
int peer_rank(const Program& program, const Instruction& transfer);
/// How many buffer slots each stage needs at once.
std::vector<int> slot_counts(const Program& program);
/// How many received tensors each rank holds at once, from the receive until the last use by the
/// stage: the receive buffers that one pool a rank needs.
std::vector<int> receive_slots(const Program& program);
/// How many versions of its weights each rank needs at once: 1, unless the Program is asynchronous.
/// A microbatch's backward uses the weights of its forward.
std::vector<int> weight_versions(const Program& program);

/// Proves that the Program can run: its compute actions are a sound Schedule, every send has its
/// receive, data is there before it is used, no two live microbatches share a slot, and no ranks
/// wait for each other for ever under the Program's communicators and transfers.
/// Throws InputError that names rank, instruction and reason.
void validate(const Program& program);
/// The same under other communicators and transfers than its own. Edge and eager deadlock least:
/// what deadlocks under them has no sound order.
void validate(const Program& program, CommunicatorLayout communicators, TransferMode transfers);

const std::vector<std::string>& communicator_layouts();  // edge, pair, rank
const std::vector<std::string>& transfer_modes();        // rendezvous, eager
std::string to_string(CommunicatorLayout layout);
std::string to_string(TransferMode mode);
CommunicatorLayout parse_communicator_layout(const std::string& name);
TransferMode parse_transfer_mode(const std::string& name);

/// torch's dialect with communication: one row a rank, cells separated by commas. Loads, tied
/// reductions and optimizer steps are left out, which it has no words for.
std::string to_csv(const Program& program);
/// Reads that dialect; loads, optimizer steps and slots are added, for which its actions must be a
/// sound Schedule. That the Program can run is for `validate` to prove. Throws MalformedFile
/// `name:row:column: …` with all errors, or InputError that says why the Schedule is not sound.
Program program_from_csv(std::string_view text, const std::string& name,
                         CommunicatorLayout communicators = CommunicatorLayout::Edge,
                         TransferMode transfers = TransferMode::Eager);

Json to_json(const Program& program);
/// Reads what `to_json` has written. That it can run is for `validate` to prove.
Program program_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
