#pragma once

// Ranks whose devices have unlike memory, against one limit: for whoever compares plans by a single
// figure of what they need.

#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::plan {

/// The most that any rank may hold; 0 where none is limited.
Bytes largest_memory(const Cluster& cluster);

/// What each of so many ranks may hold; 0: without an end. `cluster` is that of ranks
/// (cluster_of_ranks).
std::vector<Bytes> memory_by_rank(const Cluster& cluster, int ranks);

/// The most that any rank would hold if all had `largest` and as much were left to each: at most
/// `largest` where every rank is within its own `memory`, and only there.
Bytes evened_peak(const std::vector<Bytes>& held, const std::vector<Bytes>& memory, Bytes largest);

}  // namespace pipewright::plan
