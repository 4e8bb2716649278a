#pragma once

// What a Cluster says of the links between its devices: all of a Network but the flows.

#include <algorithm>
#include <cmath>
#include <vector>

#include "network/network.hpp"

namespace pipewright::sim {

/// A link that transfers share: the bus of a node (level 0), or the one way of a node or a group of
/// nodes out to a level, or in from it.
struct SharedWay {
  std::size_t level = 0;
  int group = 0;
  bool inward = false;
};

/// Those that a transfer takes: of the level that joins its ends, and of all within it that lead
/// there.
inline std::vector<SharedWay> shared_ways(const plan::Cluster& cluster, int from, int to) {
  const std::size_t outermost = plan::level_between(cluster, from, to);
  if (outermost == 0)
    return cluster.within_node.shared ? std::vector{SharedWay{0, plan::node_of(cluster, from)}}
                                      : std::vector<SharedWay>{};
  std::vector<SharedWay> ways;
  for (std::size_t level = 1; level <= outermost; ++level)
    if (plan::link_of_level(cluster, level).shared) {
      ways.push_back({level, plan::group_of(cluster, level, from), false});
      ways.push_back({level, plan::group_of(cluster, level, to), true});
    }
  return ways;
}

/// Bytes per second.
inline double rate_of(const plan::Link& link) {
  return link.bandwidth_per_s / link.oversubscription;
}

class ClusterLinks : public Network {
 public:
  explicit ClusterLinks(const plan::Cluster& cluster) : cluster_(cluster) {}

  double latency(int from, int to) const final { return link(from, to).latency.value; }
  double ring_latency(int from, int to) const final {
    return plan::ring_time(link(from, to), {}, 2, 1).latency.value;
  }
  double moved(int from, int to, double bytes) const final {
    const plan::Link& used = link(from, to);
    if (used.segments.empty())
      return bytes;
    return plan::occupancy(used, plan::whole_bytes(bytes)).value * rate_of(used);
  }
  double ring_moved(int from, int to, double bytes, int devices, int rounds) const final {
    const plan::Link& used = link(from, to);
    if (used.segments.empty() && !(used.sum_bandwidth_per_s > 0))
      return bytes;
    const double size = bytes * devices / (rounds * (devices - 1));
    const double held = plan::ring_time(used, {std::llround(size)}, devices, rounds).held.value;
    return held * rate_of(used) / flows_measured(from, to, devices);
  }
  bool is_instant(int from, int to) const final {
    return std::isinf(link(from, to).bandwidth_per_s);
  }

 protected:
  const plan::Cluster& cluster() const { return cluster_; }
  const plan::Link& link(int from, int to) const { return plan::link_between(cluster_, from, to); }

 private:
  /// How many flows of a ring were on a link at once when sums were measured.
  int flows_measured(int from, int to, int devices) const {
    const bool on_a_bus = plan::node_of(cluster_, from) == plan::node_of(cluster_, to);
    const plan::Link& used = link(from, to);
    if (!on_a_bus || !used.shared || !(used.sum_bandwidth_per_s > 0))
      return 1;
    return std::min(devices, cluster_.devices_per_node);
  }

  const plan::Cluster cluster_;
};

}  // namespace pipewright::sim
