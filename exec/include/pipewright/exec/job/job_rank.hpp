#pragma once

// The coordinates of a job's ranks along the axes pipe (the ranks of a pipeline), data
// (data-parallel replicas of the pipeline) and tensor (the tensor-parallel ranks of a stage). A
// number of consecutive pipelines forms an expert-parallel group. Every communication group follows
// from these coordinates, in any order of the axes.

#include <string>
#include <vector>

#include "pipewright/plan/cluster/topology.hpp"

namespace pipewright::exec {

/// The stride of the job's ranks along each axis, and the number of ranks.
struct JobSteps {
  int pipe = 1;
  int data = 1;
  int tensor = 1;
  int ranks = 1;
};

/// A rank of a job: its rank in a pipeline, the replica that pipeline is, and its tensor-parallel
/// rank.
struct JobRank {
  int rank = 0;
  int replica = 0;
  int replicas = 1;
  int shard = 0;
  int shards = 1;
  int expert_ranks = 1;  // pipelines in an expert-parallel group, a divisor of `replicas`
  JobSteps steps{};

  /// Return ranks of the job: this one, and the one with another rank of the pipeline and otherwise
  /// the same coordinates.
  int in_job() const { return of(rank); }
  int of(int pipeline_rank) const { return at(pipeline_rank, replica, shard); }
  /// Returns the ranks `pipeline_ranks` of all replicas, with this tensor-parallel rank, in
  /// ascending order.
  std::vector<int> of_all_replicas(const std::vector<int>& pipeline_ranks) const;
  /// Returns all ranks of all pipelines with the same tensor-parallel rank, in ascending order.
  std::vector<int> of_same_shard() const;
  /// Returns the tensor-parallel group of this rank's stages, in order, which is ascending.
  std::vector<int> of_all_shards() const;

  /// Returns the index of its part of all experts.
  int part_of_experts() const { return replica % expert_ranks; }
  /// Returns the expert-parallel group of this rank's stages, in the order of parts, which is
  /// ascending.
  std::vector<int> of_all_experts() const;
  /// Returns the ranks `pipeline_ranks` of all replicas with the same experts, with this
  /// tensor-parallel rank, in ascending order.
  std::vector<int> of_same_experts(const std::vector<int>& pipeline_ranks) const;

 private:
  int at(int pipe, int data, int tensor) const {
    return pipe * steps.pipe + data * steps.data + tensor * steps.tensor;
  }
};

/// The grid of a job's ranks.
class JobGrid {
 public:
  /// `axes`: pipe, data and tensor in any order, the last one fastest; other axes have length 1.
  /// `expert_ranks`: number of consecutive replicas that form an expert-parallel group. Throws
  /// InputError if one of the three axes is missing and has a length above 1, or if the replicas
  /// are no multiple of `expert_ranks`.
  JobGrid(int pipeline_ranks, int replicas, int shards = 1,
          const std::vector<std::string>& axes = {"pipe", "data", "tensor"}, int expert_ranks = 1);

  const plan::Topology& topology() const { return topology_; }
  /// Returns the number of ranks of the job.
  int size() const { return topology_.rank_count(); }
  JobRank rank(int rank_in_job) const;
  /// Returns the ranks of the first pipeline with tensor-parallel rank 0, for which predictions are
  /// made.
  std::vector<int> first_pipeline() const;

 private:
  int length_of(const std::string& axis) const;
  int place_of(int rank_in_job, const std::string& axis) const;

  plan::Topology topology_;
  JobSteps steps_;
  int expert_ranks_;
};

}  // namespace pipewright::exec
