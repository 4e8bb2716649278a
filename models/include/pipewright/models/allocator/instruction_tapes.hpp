#pragma once

// Streams of tensor allocations and frees of the ranks of any schedule, derived from one recording
// of the same stages. The events of an instruction depend on its schedule in only two ways: whether
// it is the first of its kind in a step, and whether its gradients come before those of an earlier
// microbatch. In that case they are set aside until it is their turn to be accumulated.

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "pipewright/models/allocator/caching_allocator.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::models {

/// A tensor is allocated or, if `bytes` is negative, freed.
struct StreamEvent {
  int tensor = 0;  // its number, in the order of allocations in the stream
  std::int64_t bytes = 0;
  friend bool operator==(const StreamEvent&, const StreamEvent&) = default;
};
using TensorStream = std::vector<StreamEvent>;

struct RecordedInstruction {
  int step = 0;
  plan::Instruction instruction{};
  TensorStream events{};  // from the single stream that runs through the whole recording
};

class InstructionTapes {
 public:
  /// Learns from a recording of a few steps on one rank that has all stages, with several
  /// microbatches each. The newest instruction of a kind represents all. Given recordings in
  /// several orders, a tensor that several instructions hold is freed by the last of them.
  void learn(const std::vector<RecordedInstruction>& recorded);

  struct PlacedInstruction {
    int rank = 0;
    plan::Instruction instruction{};
  };
  /// Returns the stream of each rank for steps whose Program has its instructions in this order. A
  /// tensor belongs to the rank that allocates it, whichever rank frees it. Throws InputError for
  /// an action that was not recorded.
  std::vector<TensorStream> streams_of(const std::vector<PlacedInstruction>& program,
                                       int steps) const;

 private:
  /// Early: makes gradients before an earlier microbatch does.
  enum class Turn { First, Later, Early };
  /// The kind, stage and turn of the instructions that share a tape.
  using Key = std::tuple<plan::InstructionKind, int, Turn>;
  /// A tensor, identified by the instruction that allocates it: of the same microbatch, or else the
  /// newest.
  struct Made {
    Key by{};
    int place = 0;  // index among the tensors that `by` allocates
    bool of_microbatch = false;
    friend auto operator<=>(const Made&, const Made&) = default;
  };
  struct Entry {
    std::int64_t bytes = 0;  // 0: set-aside gradients are accumulated here
    Made tensor{};           // the tensor to free
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  using Tape = std::vector<Entry>;
  class Turns;
  class Recording;
  class Writer;

  static Tape merged(const Tape& tape, const Tape& other);
  void find_holders();

  std::map<Key, Tape> tapes_{};
  /// The instructions that release each tensor.
  std::map<Made, std::set<std::pair<plan::InstructionKind, int>>> holders_{};
  /// The tensors that an early instruction sets aside, in this order.
  std::map<Key, std::vector<int>> aside_{};
};

/// Returns the counters of an allocator that has served the whole stream.
AllocatorCounters counters_of(const TensorStream& stream, const AllocatorOptions& options = {});

}  // namespace pipewright::models
