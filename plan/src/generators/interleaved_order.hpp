#pragma once

// The order of the (chunk, microbatch) pairs on one rank of an interleaved schedule. It consists of
// rounds of `group` microbatches; each round passes all chunks before the next round starts.
// Backwards go through the chunks in reverse.

#include "pipewright/plan/schedules/action.hpp"

namespace pipewright::plan {

class InterleavedOrder {
 public:
  InterleavedOrder(int rank, int ranks, int microbatches, int chunks, int group)
      : rank_(rank), ranks_(ranks), microbatches_(microbatches), chunks_(chunks), group_(group) {}

  int count() const { return microbatches_ * chunks_; }
  Action forward(int step) const { return at(step, ActionKind::Forward, false); }
  Action backward(int step, ActionKind kind) const { return at(step, kind, true); }

 private:
  Action at(int step, ActionKind kind, bool reverse) const {
    const int round = step / (group_ * chunks_);
    const int first = round * group_;
    const int size = microbatches_ - first < group_ ? microbatches_ - first : group_;
    const int within = step - first * chunks_;
    const int chunk = reverse ? chunks_ - 1 - within / size : within / size;
    return {kind, chunk * ranks_ + rank_, first + within % size};
  }

  int rank_;
  int ranks_;
  int microbatches_;
  int chunks_;
  int group_;
};

}  // namespace pipewright::plan
