#include "pipewright/plan/cluster/node_orders.hpp"

#include <algorithm>
#include <numeric>

namespace pipewright::plan {
namespace {

bool are_alike(const NodeKind& a, const NodeKind& b) {
  return a.device == b.device && a.speed == b.speed;
}

/// Merges consecutive identical kinds.
std::vector<NodeKind> merged(const std::vector<NodeKind>& kinds) {
  std::vector<NodeKind> runs;
  for (const NodeKind& kind : kinds)
    if (!runs.empty() && are_alike(runs.back(), kind))
      runs.back().nodes += kind.nodes;
    else
      runs.push_back(kind);
  return runs;
}

/// Returns the kinds of the first `nodes` nodes.
std::vector<NodeKind> first_nodes(const std::vector<NodeKind>& kinds, int nodes) {
  std::vector<NodeKind> filled;
  for (const NodeKind& kind : kinds)
    if (nodes > 0) {
      filled.push_back(kind);
      filled.back().nodes = std::min(kind.nodes, nodes);
      nodes -= kind.nodes;
    }
  return merged(filled);
}

bool can_change_places(const Cluster& cluster) {
  if (!cluster.mixture)
    return false;
  if (!cluster.fabric || cluster.fabric->levels.empty())
    return true;
  const int group = cluster.fabric->levels.back().group_nodes;
  return std::ranges::all_of(cluster.mixture->kinds,
                             [&](const NodeKind& kind) { return kind.nodes % group == 0; });
}

/// Returns the orders of kinds to try, as indices.
std::vector<std::vector<std::size_t>> rows_of(const std::vector<NodeKind>& kinds) {
  std::vector<std::size_t> row(kinds.size());
  std::iota(row.begin(), row.end(), 0);
  std::vector<std::vector<std::size_t>> rows;
  if (kinds.size() <= most_kinds_in_all_orders) {
    do
      rows.push_back(row);
    while (std::next_permutation(row.begin(), row.end()));
    return rows;
  }
  rows.push_back(row);
  const auto is_faster = [&](std::size_t a, std::size_t b) {
    return kinds[a].speed > kinds[b].speed;
  };
  std::stable_sort(row.begin(), row.end(), is_faster);
  rows.push_back(row);
  std::reverse(row.begin(), row.end());
  rows.push_back(row);
  return rows;
}

NodeOrder order_of(const Cluster& cluster, const std::vector<std::size_t>& row) {
  const std::vector<NodeKind>& kinds = cluster.mixture->kinds;
  NodeOrder order{.cluster = cluster, .nodes = {}};
  std::vector<NodeKind> in_order;
  for (const std::size_t at : row) {
    in_order.push_back(kinds[at]);
    int node = 0;
    for (std::size_t before = 0; before < at; ++before)
      node += kinds[before].nodes;
    for (int own = 0; own < kinds[at].nodes; ++own)
      order.nodes.push_back(node++);
  }
  order.cluster.mixture->kinds = std::move(in_order);
  return order;
}

}  // namespace

std::vector<NodeOrder> node_orders(const Cluster& cluster, int devices) {
  std::vector<NodeOrder> orders{{.cluster = cluster, .nodes = {}}};
  orders.front().nodes.resize(static_cast<std::size_t>(cluster.nodes));
  std::iota(orders.front().nodes.begin(), orders.front().nodes.end(), 0);
  if (!can_change_places(cluster))
    return orders;
  const int filled = (devices + cluster.devices_per_node - 1) / cluster.devices_per_node;
  std::vector<std::vector<NodeKind>> known{first_nodes(cluster.mixture->kinds, filled)};
  for (const std::vector<std::size_t>& row : rows_of(cluster.mixture->kinds)) {
    NodeOrder order = order_of(cluster, row);
    auto own = first_nodes(order.cluster.mixture->kinds, filled);
    if (std::ranges::find(known, own) != known.end())
      continue;
    known.push_back(std::move(own));
    orders.push_back(std::move(order));
  }
  return orders;
}

}  // namespace pipewright::plan
