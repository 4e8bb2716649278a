#pragma once

// The links of a Cluster that transfers share, and their bandwidths.

#include <algorithm>
#include <limits>
#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::sim {

/// A link that transfers share: the bus of a node (level 0), or one direction of the link from a
/// node or a group of nodes to a level, outward or inward.
struct SharedPath {
  std::size_t level = 0;
  int group = 0;
  bool inward = false;
};

/// Returns the shared links of a transfer: those of the level that joins its ends, and of all
/// levels inside it on the way there.
inline std::vector<SharedPath> shared_ways(const plan::Cluster& cluster, int from, int to) {
  const std::size_t outermost = plan::level_between(cluster, from, to);
  if (outermost == 0)
    return cluster.within_node.shared ? std::vector{SharedPath{0, plan::node_of(cluster, from)}}
                                      : std::vector<SharedPath>{};
  std::vector<SharedPath> ways;
  for (std::size_t level = 1; level <= outermost; ++level)
    if (plan::link_of_level(cluster, level).shared) {
      ways.push_back({level, plan::group_of(cluster, level, from), false});
      ways.push_back({level, plan::group_of(cluster, level, to), true});
    }
  return ways;
}

/// Returns bytes per second.
inline double rate_of(const plan::Link& link) {
  return link.bandwidth_per_s / link.oversubscription;
}

/// Returns true if transfers to other groups of nodes pass a shared link that is slower than
/// theirs.
inline bool narrows_inside(const plan::Cluster& cluster) {
  double narrowest = std::numeric_limits<double>::infinity();
  for (std::size_t level = 1; level < plan::level_count(cluster); ++level) {
    const plan::Link& link = plan::link_of_level(cluster, level);
    if (rate_of(link) > narrowest)
      return true;
    if (link.shared)
      narrowest = std::min(narrowest, rate_of(link));
  }
  return false;
}

/// Returns the number of flows of a ring that used a link at once when its all-reduces were
/// measured.
inline int flows_measured(const plan::Cluster& cluster, int from, int to, std::size_t devices) {
  const plan::Link& link = plan::link_between(cluster, from, to);
  if (plan::level_between(cluster, from, to) > 0 || !link.shared ||
      !(link.collective_bandwidth_per_s > 0))
    return 1;
  return std::min(static_cast<int>(devices), cluster.devices_per_node);
}

}  // namespace pipewright::sim
