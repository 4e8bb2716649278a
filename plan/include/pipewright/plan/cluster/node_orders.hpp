#pragma once

// In which order ranks may fill the nodes of a cluster that has several kinds of them: this decides
// which stage goes to which kind.

#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::plan {

struct NodeOrder {
  /// The same nodes, in the order in which ranks fill them.
  Cluster cluster;
  /// By node of that: which one of the cluster at hand it is.
  std::vector<int> nodes;
};

/// More kinds than these are ordered by their speeds alone.
inline constexpr std::size_t most_kinds_in_all_orders = 4;

/// The cluster at hand first, then others, one for each row of kinds that `devices` of them can be
/// filled in; all orders where there are few kinds, else by falling and by rising speed. A single
/// one where all nodes are alike, and where a kind is no whole groups of the outermost level of
/// links: there the nodes could not change places.
std::vector<NodeOrder> node_orders(const Cluster& cluster, int devices);

}  // namespace pipewright::plan
