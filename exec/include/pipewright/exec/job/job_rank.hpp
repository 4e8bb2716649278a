#pragma once

// A rank in the grid of a job: pipelines run side by side, each with the same number of ranks.

#include <vector>

namespace pipewright::exec {

/// Which rank of a pipeline this is, and of which of the pipelines.
struct JobRank {
  int rank = 0;
  int replica = 0;
  int replicas = 1;
  /// Ranks of the job: the pipelines' copies of one rank are neighbours.
  int of(int pipeline_rank) const { return pipeline_rank * replicas + replica; }
  int in_job() const { return of(rank); }
  /// The copies of these ranks in all pipelines, as ranks of the job.
  std::vector<int> of_all_replicas(const std::vector<int>& pipeline_ranks) const {
    std::vector<int> ranks;
    for (const int each : pipeline_ranks)
      for (int copy = 0; copy < replicas; ++copy)
        ranks.push_back(each * replicas + copy);
    return ranks;
  }
};

/// The other direction: rank `rank_in_job` of a job of so many pipelines.
inline JobRank job_rank_of(int rank_in_job, int replicas) {
  return {rank_in_job / replicas, rank_in_job % replicas, replicas};
}

}  // namespace pipewright::exec
