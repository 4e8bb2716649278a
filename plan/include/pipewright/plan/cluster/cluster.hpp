#pragma once

// The machines that a plan is for: nodes of devices, and the links between them, level by level
// from the inside out: within a node, between nodes, and what joins groups of nodes.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/cluster/machine.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

struct Device {
  std::string name;
  Bytes memory;                       // 0: not limited
  double flops_per_s = 0;             // peak; 0: not known
  double memory_bandwidth_per_s = 0;  // bytes; 0: not known
  friend bool operator==(const Device&, const Device&) = default;
};

/// What a transfer of `from` bytes or more takes: `time` for so many, the others at this bandwidth.
struct LinkSegment {
  Bytes from;
  Seconds time;
  double bandwidth_per_s = 1e12;
  friend bool operator==(const LinkSegment&, const LinkSegment&) = default;
};

/// How long a transfer keeps one of its ends from computing, beside what others wait for its bytes:
/// the overhead of LogP (Culler et al., PPoPP 1993), which may grow with the bytes.
struct Overhead {
  Seconds each;
  double bandwidth_per_s = 0;           // bytes; 0: it does not grow
  std::vector<LinkSegment> segments{};  // where the curve has kinks, by rising `from`
  friend bool operator==(const Overhead&, const Overhead&) = default;
};
Seconds time_of(const Overhead& overhead, Bytes size);

struct Overheads {
  Overhead send;
  Overhead receive;
  Overhead sum;  // each step of a collective's ring
  friend bool operator==(const Overheads&, const Overheads&) = default;
};

/// A directed link: a transfer takes latency + bytes/bandwidth and holds it for bytes/bandwidth.
struct Link {
  Seconds latency;
  double bandwidth_per_s = 1e12;  // bytes
  bool shared = false;            // by all transfers of a node, instead of one per pair of ranks
  /// Where the curve has kinks or jumps: by rising `from`. The last one that a transfer reaches
  /// says what it takes; all but the link's latency holds the link.
  std::vector<LinkSegment> segments{};
  /// The bandwidth of a step of a collective's ring, where that differs from a transfer's. 0: it
  /// does not.
  double sum_bandwidth_per_s = 0;
  Seconds sum_latency{};
  std::vector<LinkSegment> sum_segments{};  // by the bytes of a step
  /// The same of the sums that the shards of a layer make in the middle of an action. A bandwidth
  /// of 0: as of other sums.
  double shard_bandwidth_per_s = 0;
  Seconds shard_latency{};
  std::vector<LinkSegment> shard_segments{};
  /// How much of such a sum goes on while its rank computes the other action of a fused pair: 0, as
  /// where pairs run one after the other, to 1.
  double shard_overlap = 0;
  Overheads overheads{};
  /// How many times more those that it joins can send at once than it carries: each gets so much
  /// less than its bandwidth.
  double oversubscription = 1;
  friend bool operator==(const Link&, const Link&) = default;
};

/// A link further out than that between nodes.
struct LinkLevel {
  std::string name;
  int group_nodes = 1;  // it joins groups of so many nodes
  Link link;            // shared: by all transfers that leave or enter a group
  friend bool operator==(const LinkLevel&, const LinkLevel&) = default;
};

struct Fabric {
  /// Whether the link between nodes joins only devices of equal place in their nodes. The others
  /// take the next level.
  bool rails = false;
  std::vector<LinkLevel>
      levels;  // from the inside out; the groups of one are whole groups of the last
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

/// Nodes whose devices are not those that costs are of.
struct NodeKind {
  int nodes = 1;
  Device device;
  double speed = 1;  // of compute, beside the device that was measured
  friend bool operator==(const NodeKind&, const NodeKind&) = default;
};

struct Mixture {
  std::vector<NodeKind> kinds;  // the first has the first nodes; together all of them
  friend bool operator==(const Mixture&, const Mixture&) = default;
};

struct Cluster {
  std::string name;
  int nodes = 1;
  int devices_per_node = 1;
  Device device;
  Link within_node;
  Link between_nodes;
  /// By rank: how fast it computes beside the device that was measured. Empty: all 1.
  std::vector<double> rank_speeds{};
  /// By rank: the bytes that it may hold, 0 for no limit. Empty: what the device has.
  std::vector<double> rank_memory{};
  /// What was measured of it beside these; for analytic times.
  std::optional<Machine> machine{};
  std::optional<Fabric> fabric{};    // absent: all nodes have one link between them
  std::optional<Mixture> mixture{};  // absent: all devices are `device`
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

int device_count(const Cluster& cluster);
/// The kind of a device's node; null: all are alike.
const NodeKind* kind_of(const Cluster& cluster, int device);
/// How fast a device computes by its node's kind, beside the one that was measured.
double kind_speed(const Cluster& cluster, int device);
/// With more nodes like its own, or its last ones, where so many devices need them. Throws
/// InputError that names `field` where these are not whole nodes.
Cluster with_nodes_for(Cluster cluster, int devices, const std::string& field);

/// What a rank may hold; 0: without an end.
Bytes memory_of(const Cluster& cluster, int rank);
bool limits_memory(const Cluster& cluster);
/// The least that any rank may hold; 0 where none is limited.
Bytes least_memory(const Cluster& cluster);
/// The same without an end to any rank's memory.
Cluster roomy(Cluster cluster);

/// Ranks fill the nodes in order; those past the last device start over at the first node.
int node_of(const Cluster& cluster, int rank);
/// The innermost level that has both: 0 within a node, 1 between nodes, then those of the fabric.
std::size_t level_between(const Cluster& cluster, int rank, int other_rank);
std::size_t level_count(const Cluster& cluster);
const Link& link_of_level(const Cluster& cluster, std::size_t level);
/// "within a node", "between nodes", or "of the level NAME".
std::string level_words(const Cluster& cluster, std::size_t level);
const Link& link_between(const Cluster& cluster, int rank, int other_rank);
/// Those of all levels, from the inside out.
std::vector<Link*> links_of(Cluster& cluster);
bool shares_links(const Cluster& cluster);
/// The node of a device, or the group of nodes that a level from 2 on joins to others: what has one
/// way out to a level from 1 on.
int group_of(const Cluster& cluster, std::size_t level, int rank);
int group_count(const Cluster& cluster, std::size_t level);

/// How long a transfer holds its link: bytes over bandwidth, or what its segment says. It arrives
/// one latency later.
Seconds occupancy(const Link& link, Bytes size);

/// What a ring of n devices takes to pass on pieces of size/n, `rounds` times n - 1 steps.
struct RingTime {
  Seconds held;     // of its links
  Seconds latency;  // of all steps
};
RingTime ring_time(const Link& link, Bytes size, double devices, int rounds);
/// What n shards of a layer take to sum what each has of this size, as such a ring.
RingTime shard_sum_time(const Link& link, Bytes size, double devices);
/// For how long such a ring keeps each of its devices from computing.
Seconds ring_overhead(const Link& link, Bytes size, double devices, int rounds);

Json to_json(const Cluster& cluster);
/// Reads the object at hand, so that a scenario can hold a cluster inline.
Cluster read_cluster(JsonObject& object);
Cluster cluster_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
