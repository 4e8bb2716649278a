#pragma once

// Those who share out a rank's stages, its shards or the ranks with the other experts, as its
// layers call them: in the middle of an action, on the rank's own thread, on that of a second
// action beside, or in a backward on a GPU on autograd's.

#include <deque>

#include "baton.hpp"
#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/training/shard_group.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "progress.hpp"
#include "stopwatch.hpp"

namespace pipewright::exec {

class RankShards final : public ShardGroup {
 public:
  /// `self`: this rank of the job, one of those it meets. `compute`: the stream that actions go to.
  /// References are kept.
  RankShards(int self, Meeting others, const Stream& compute, Transport& transport,
             Progress& progress, Stopwatch& stopwatch);

  /// Throws Aborted where the job ends meanwhile.
  Tensors all_to_all(const Tensors& parts) override;

  /// Before a pass.
  void begin() { met_.clear(); }
  /// After one, when the device has come to all of it: how long this rank has waited for one that
  /// was late, each time that it met the others. All of them call it.
  void learn_waits();

  /// While it lives, two actions take turns by this baton, and meet others so.
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
  /// A collective of this pass.
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
  std::deque<Met> met_;  // in the order of the group; referred to by what is told later
};

}  // namespace pipewright::exec
