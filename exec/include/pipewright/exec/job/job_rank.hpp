#pragma once

// Who is where in a job: its ranks have a place along the axis pipe (the ranks of a pipeline), data
// (pipelines side by side) and tensor (the shards of a stage). So many pipelines in a row share out
// the experts of their mixtures. Every group of ranks that work
// together follows from these places, in whatever order the axes are.

#include <string>
#include <vector>

#include "pipewright/plan/cluster/topology.hpp"

namespace pipewright::exec {

/// By how much the rank of the job grows along each axis, and how many there are.
struct JobSteps {
  int pipe = 1;
  int data = 1;
  int tensor = 1;
  int ranks = 1;
};

/// A rank of a job: which rank of a pipeline it is, of which of the pipelines, and of which shard
/// of each of its stages.
struct JobRank {
  int rank = 0;
  int replica = 0;
  int replicas = 1;
  int shard = 0;
  int shards = 1;
  int expert_ranks = 1;  // pipelines that share out experts, a divisor of `replicas`
  JobSteps steps{};

  /// Ranks of the job: this one, and who is like it but for the rank of the pipeline.
  int in_job() const { return of(rank); }
  int of(int pipeline_rank) const { return at(pipeline_rank, replica, shard); }
  /// The copies of these ranks in all pipelines, of the same shard, in rising order.
  std::vector<int> of_all_replicas(const std::vector<int>& pipeline_ranks) const;
  /// All ranks of all pipelines, of the same shard, in rising order.
  std::vector<int> of_same_shard() const;
  /// The shards of this rank's stages, in their order, which is rising.
  std::vector<int> of_all_shards() const;

  /// Which of the parts of all experts it has.
  int part_of_experts() const { return replica % expert_ranks; }
  /// Who shares out the experts of this rank's stages, in the order of parts, which is rising.
  std::vector<int> of_all_experts() const;
  /// The copies of these ranks in all pipelines that have the same experts, of the same shard, in
  /// rising order.
  std::vector<int> of_same_experts(const std::vector<int>& pipeline_ranks) const;

 private:
  int at(int pipe, int data, int tensor) const {
    return pipe * steps.pipe + data * steps.data + tensor * steps.tensor;
  }
};

/// The ranks of a job.
class JobGrid {
 public:
  /// `axes`: pipe, data and tensor in any order, the last one the fastest; others have one place
  /// each. `expert_ranks`: so many replicas in a row share out their experts. Throws InputError
  /// where one of the three axes is missing and has several places, or where the replicas are no
  /// multiple of `expert_ranks`.
  JobGrid(int pipeline_ranks, int replicas, int shards = 1,
          const std::vector<std::string>& axes = {"pipe", "data", "tensor"}, int expert_ranks = 1);

  const plan::Topology& topology() const { return topology_; }
  /// How many ranks the job has.
  int size() const { return topology_.rank_count(); }
  JobRank rank(int rank_in_job) const;
  /// The ranks of the first pipeline, first shards alone: those that a prediction is of.
  std::vector<int> first_pipeline() const;

 private:
  int length_of(const std::string& axis) const;
  int place_of(int rank_in_job, const std::string& axis) const;

  plan::Topology topology_;
  JobSteps steps_;
  int expert_ranks_;
};

}  // namespace pipewright::exec
