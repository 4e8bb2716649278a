#pragma once

// A rank's tensor-parallel or expert-parallel group, as its layers call it in the middle of an
// action. Calls come from the rank's own thread, from the thread of the second action of a pair,
// or, in a backward on a GPU, from autograd's thread.

#include <deque>

#include "baton.hpp"
#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/training/shard_group.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "progress.hpp"
#include "stopwatch.hpp"

namespace pipewright::exec {

class RankShards final : public TensorParallelGroup {
 public:
  /// `self` is this rank of the job, a member of the group. `compute` is the stream of actions.
  /// Keeps references to its arguments.
  RankShards(int self, Meeting others, const Stream& compute, Transport& transport,
             Progress& progress, Stopwatch& stopwatch);

  /// Throws Aborted if the job ends meanwhile.
  Tensors all_to_all(const Tensors& parts) override;

  /// Prepares a pass.
  void begin() { met_.clear(); }
  /// Computes, after a pass whose device work is done, how long this rank waited for a late member
  /// in each collective. All members call it.
  void learn_waits();

  /// Makes the collectives of two actions take turns with a baton, while it lives.
  class InTurns {
   public:
    InTurns(RankShards& shards, Baton& baton) : shards_(shards) { shards.baton_ = &baton; }
    ~InTurns() { shards_.baton_ = nullptr; }
    InTurns(const InTurns&) = delete;
    InTurns& operator=(const InTurns&) = delete;

   private:
    RankShards& shards_;
  };

 private:
  /// A collective of the current pass.
  struct Met {
    Interval when;
    plan::Seconds late{};
  };

  std::vector<Tensors> exchanged(const std::vector<Tensors>& for_each);

  const int self_;
  const Meeting meeting_;
  const Stream& compute_;
  Transport& transport_;
  Progress& progress_;
  Stopwatch& stopwatch_;
  Baton* baton_ = nullptr;
  std::deque<Met> met_;  // in the group's order; records point into it
};

}  // namespace pipewright::exec
