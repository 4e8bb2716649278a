#include "pipewright/plan/cluster/even_memory.hpp"

#include <algorithm>

namespace pipewright::plan {

Bytes largest_memory(const Cluster& cluster) {
  Bytes largest;
  for (std::size_t rank = 0; rank < cluster.rank_memory.size(); ++rank)
    largest = std::max(largest, memory_of(cluster, static_cast<int>(rank)));
  if (!cluster.rank_memory.empty())
    return largest;
  if (!cluster.mixture)
    return cluster.device.memory;
  for (const NodeKind& kind : cluster.mixture->kinds)
    largest = std::max(largest, kind.device.memory);
  return largest;
}

std::vector<Bytes> memory_by_rank(const Cluster& cluster, int ranks) {
  std::vector<Bytes> memory;
  for (int rank = 0; rank < ranks; ++rank)
    memory.push_back(memory_of(cluster, rank));
  return memory;
}

Bytes normalized_peak(const std::vector<Bytes>& held, const std::vector<Bytes>& memory,
                      Bytes largest) {
  Bytes most;
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    const bool has_end = memory[rank] > Bytes{};
    const Bytes own = has_end              ? held[rank] + (largest - memory[rank])
                      : largest == Bytes{} ? held[rank]
                                           : std::min(held[rank], largest);
    most = std::max(most, own);
  }
  return most;
}

}  // namespace pipewright::plan
