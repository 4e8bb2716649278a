#pragma once

// The orders in which ranks may fill a cluster with several kinds of nodes. The order decides which
// stage runs on which kind.

#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::plan {

/// One order of a cluster's nodes.
struct NodeOrder {
  /// The cluster with its nodes in the order in which ranks fill them.
  Cluster cluster;
  /// Index of each of these nodes in the original cluster.
  std::vector<int> nodes;
};

/// Clusters with more kinds than this are ordered by speed only.
inline constexpr std::size_t most_kinds_in_all_orders = 4;

/// Returns the original order first, then one for each other sequence of kinds that `devices` ranks
/// can fill: all permutations if there are few kinds, else by descending and by ascending speed.
/// Returns only the original order if all nodes have the same kind, or if a kind does not fill
/// whole groups of the outermost link level, because then nodes cannot be exchanged.
std::vector<NodeOrder> node_orders(const Cluster& cluster, int devices);

}  // namespace pipewright::plan
