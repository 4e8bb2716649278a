#pragma once

#include <vector>

namespace pipewright::exec {

/// Which rank of the job this is: the rank of a pipeline, and which of the pipelines side by side.
struct GridPlace {
  int rank = 0;
  int replica = 0;
  int replicas = 1;
  /// Ranks of the job: the pipelines' copies of one rank are neighbours.
  int of(int pipeline_rank) const { return pipeline_rank * replicas + replica; }
  int self() const { return of(rank); }
  /// The copies of these ranks in all pipelines, as ranks of the job.
  std::vector<int> of_all_replicas(const std::vector<int>& pipeline_ranks) const {
    std::vector<int> ranks;
    for (const int each : pipeline_ranks)
      for (int copy = 0; copy < replicas; ++copy)
        ranks.push_back(each * replicas + copy);
    return ranks;
  }
};

}  // namespace pipewright::exec
