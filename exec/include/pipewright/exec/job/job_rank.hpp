#pragma once

// Who is where in a job: its ranks have a place along the axis pipe (the ranks of a pipeline), data
// (pipelines side by side) and tensor (the shards of a stage), and every group of ranks that work
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

 private:
  int at(int pipe, int data, int tensor) const {
    return pipe * steps.pipe + data * steps.data + tensor * steps.tensor;
  }
};

/// The ranks of a job.
class JobGrid {
 public:
  /// `axes`: pipe, data and tensor in any order, the last one the fastest; others have one place
  /// each. Throws InputError where one of the three is missing and has several places.
  JobGrid(int pipeline_ranks, int replicas, int shards = 1,
          const std::vector<std::string>& axes = {"pipe", "data", "tensor"});

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
};

}  // namespace pipewright::exec
