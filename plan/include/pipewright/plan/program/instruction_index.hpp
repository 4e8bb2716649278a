#pragma once

// Finds an instruction of a Program by what it is: kind, stage and microbatch. A flat table, since
// programs have millions of instructions.

#include <optional>

#include "pipewright/plan/large_vector.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

class InstructionIndex {
 public:
  /// Every stage and microbatch must be one of the Program's.
  explicit InstructionIndex(const Program& program)
      : microbatches_(static_cast<std::size_t>(program.microbatches)),
        stages_(static_cast<std::size_t>(stage_count(program))),
        at_(kinds_with_microbatch * microbatches_ * stages_, -1) {}

  /// The number given to an instruction with a microbatch; -1 when none was.
  int find(InstructionKind kind, int stage, int microbatch) const {
    return at_[place(kind, stage, microbatch)];
  }
  int find(const Instruction& i) const { return find(i.kind, i.stage, i.microbatch); }
  /// Gives an instruction a number; false when it had one.
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
