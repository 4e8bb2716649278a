#pragma once

// Ranks with different memory limits, reduced to one limit, for callers that compare plans by a
// single figure for memory.

#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::plan {

/// Returns the largest memory limit of any rank; 0 if no rank has one.
Bytes largest_memory(const Cluster& cluster);

/// Returns the memory limit of each of the first `ranks` ranks; 0: unlimited. `cluster` must be one
/// whose devices are ranks (cluster_of_ranks).
std::vector<Bytes> memory_by_rank(const Cluster& cluster, int ranks);

/// Returns the highest peak that any rank would have if every limit were `largest` and each rank
/// kept its free memory. The result is at most `largest` if and only if every rank is within its
/// own limit in `memory`.
Bytes normalized_peak(const std::vector<Bytes>& held, const std::vector<Bytes>& memory,
                      Bytes largest);

}  // namespace pipewright::plan
