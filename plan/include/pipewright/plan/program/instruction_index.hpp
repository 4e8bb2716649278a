#pragma once

// Index of a Program's instructions by kind, stage and microbatch. It is a flat table, because
// programs have millions of instructions.

#include <optional>

#include "pipewright/plan/large_vector.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

class InstructionIndex {
 public:
  /// Every stage and microbatch must belong to the Program.
  explicit InstructionIndex(const Program& program)
      : microbatches_(static_cast<std::size_t>(program.microbatches)),
        stages_(static_cast<std::size_t>(stage_count(program))),
        at_(kinds_with_microbatch * microbatches_ * stages_, -1) {}

  /// Returns the number given to an instruction with a microbatch, or -1 if it has none.
  int find(InstructionKind kind, int stage, int microbatch) const {
    return at_[place(kind, stage, microbatch)];
  }
  int find(const Instruction& i) const { return find(i.kind, i.stage, i.microbatch); }
  /// Gives an instruction a number. Returns false if it already had one.
  bool insert(const Instruction& i, int number) {
    int& entry = at_[place(i.kind, i.stage, i.microbatch)];
    const bool fresh = entry < 0;
    if (fresh)
      entry = number;
    return fresh;
  }

 private:
  std::size_t place(InstructionKind kind, int stage, int microbatch) const {
    return (static_cast<std::size_t>(kind) * stages_ + static_cast<std::size_t>(stage)) *
               microbatches_ +
           static_cast<std::size_t>(microbatch);
  }

  std::size_t microbatches_;
  std::size_t stages_;
  LargeVector<int> at_;
};

}  // namespace pipewright::plan
