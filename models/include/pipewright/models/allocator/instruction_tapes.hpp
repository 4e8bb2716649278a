#pragma once

// The streams of tensors that the ranks of any schedule ask of an allocator, from one recording of
// the same stages: what an instruction makes and lets go of depends on its schedule only by whether
// it is the first of its kind in a step, and by whether gradients come before those of an earlier
// microbatch: then they are set aside until it is their turn to be added.

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

/// A tensor is made, or, with bytes below zero, let go of.
struct StreamEvent {
  int tensor = 0;  // its number, in the order in which those of the stream are made
  std::int64_t bytes = 0;
  friend bool operator==(const StreamEvent&, const StreamEvent&) = default;
};
using TensorStream = std::vector<StreamEvent>;

struct RecordedInstruction {
  int step = 0;
  plan::Instruction instruction{};
  TensorStream events{};  // of the one stream that goes through all that was recorded
};

class InstructionTapes {
 public:
  /// A few steps of one rank that has all stages, each with several microbatches; the newest
  /// instruction of a kind speaks for all. Of recordings in several orders: what several
  /// instructions need is let go of by the last of them.
  void learn(const std::vector<RecordedInstruction>& recorded);

  struct PlacedInstruction {
    int rank = 0;
    plan::Instruction instruction{};
  };
  /// By rank: of steps in whose Program instructions follow one another in this order. A tensor is
  /// of the rank that makes it, whoever lets go of it. Throws InputError for an action that was not
  /// recorded.
  std::vector<TensorStream> streams_of(const std::vector<PlacedInstruction>& program,
                                       int steps) const;

 private:
  /// Early: with gradients, before an earlier microbatch's.
  enum class Turn { First, Later, Early };
  /// Of instructions of one tape: what they do with which stage, and when.
  using Key = std::tuple<plan::InstructionKind, int, Turn>;
  /// A tensor by who made it: for the same microbatch, or else the newest.
  struct Made {
    Key by{};
    int place = 0;  // among what that made
    bool of_microbatch = false;
    friend auto operator<=>(const Made&, const Made&) = default;
  };
  struct Entry {
    std::int64_t bytes = 0;  // 0: here gradients are added that were set aside
    Made tensor{};           // that is let go of
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  using Tape = std::vector<Entry>;
  class Turns;
  class Recording;
  class Writer;

  static Tape merged(const Tape& tape, const Tape& other);
  void find_holders();

  std::map<Key, Tape> tapes_{};
  std::map<Made, std::set<std::pair<plan::InstructionKind, int>>> holders_{};  // who lets go of it
  std::map<Key, std::vector<int>> aside_{};  // of an early one, in this order
};

/// Of an allocator that was asked for all of it.
AllocatorCounters counters_of(const TensorStream& stream, const AllocatorOptions& options = {});

}  // namespace pipewright::models
