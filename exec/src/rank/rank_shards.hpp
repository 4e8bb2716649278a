#pragma once

// The shards of a rank's stages, as its layers call them: in the middle of an action, on the rank's
// own thread, on that of a second action beside, or in a backward on a GPU on autograd's.

#include "baton.hpp"
#include "device/stream.hpp"
#include "pipewright/exec/job/job_rank.hpp"
#include "pipewright/exec/training/shard_group.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "progress.hpp"
#include "stopwatch.hpp"

namespace pipewright::exec {

class RankShards final : public ShardGroup {
 public:
  /// `compute`: the stream that actions go to. References are kept.
  RankShards(const JobRank& job_rank, const Stream& compute, Transport& transport,
             Progress& progress, Stopwatch& stopwatch);

  /// Throws Aborted where the job ends meanwhile.
  Tensors all_to_all(const Tensors& parts) override;

  /// While it lives, two actions take turns by this baton, and meet their shards so.
  class InTurns {
   public:
    InTurns(RankShards& shards, Baton& baton) : shards_(shards) { shards.baton_ = &baton; }
    ~InTurns() { shards_.baton_ = nullptr; }
    InTurns(const InTurns&) = delete;
    InTurns& operator=(const InTurns&) = delete;

   private:
    RankShards& shards_;
  };

  /// What a stage is built with. `groups`: TrainingSetup::tensor_groups, not 0.
  ShardPlace place(int groups);

 private:
  std::vector<Tensors> exchanged(const std::vector<Tensors>& for_each);

  const JobRank& job_rank_;
  const std::vector<int> ranks_;  // of the job
  const Stream& compute_;
  Transport& transport_;
  Progress& progress_;
  Stopwatch& stopwatch_;
  Baton* baton_ = nullptr;
};

}  // namespace pipewright::exec
