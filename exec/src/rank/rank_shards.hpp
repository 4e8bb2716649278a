#pragma once

// The shards of a rank's stages, as its layers call them: in the middle of an action, on the rank's
// own thread, or in a backward on a GPU on autograd's.

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

  /// What a stage is built with. `groups`: TrainingSetup::tensor_groups, not 0.
  ShardPlace place(int groups);

 private:
  const JobRank& job_rank_;
  const std::vector<int> ranks_;  // of the job
  const Stream& compute_;
  Transport& transport_;
  Progress& progress_;
  Stopwatch& stopwatch_;
};

}  // namespace pipewright::exec
