#pragma once

// The machines that a plan is for: nodes of devices, and the links between them. Links have levels,
// from the inside out: within a node, between nodes, and between groups of nodes.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/cluster/machine.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

struct Device {
  std::string name;
  Bytes memory;                       // 0: unlimited
  double flops_per_s = 0;             // peak; 0: unknown
  double memory_bandwidth_per_s = 0;  // bytes per second; 0: unknown
  friend bool operator==(const Device&, const Device&) = default;
};

/// One segment of a link's time curve: a transfer of `from` bytes takes `time`, and bytes beyond
/// `from` move at this bandwidth.
struct LinkSegment {
  Bytes from;
  Seconds time;
  double bandwidth_per_s = 1e12;
  friend bool operator==(const LinkSegment&, const LinkSegment&) = default;
};

/// For how long a transfer keeps one of its ends from computing, in addition to the time for which
/// others wait for its bytes. This is the overhead of LogP (Culler et al., PPoPP 1993); it may grow
/// with the bytes.
struct Overhead {
  Seconds each;
  double bandwidth_per_s = 0;           // bytes per second; 0: it does not grow
  std::vector<LinkSegment> segments{};  // where the curve has kinks, by ascending `from`
  friend bool operator==(const Overhead&, const Overhead&) = default;
};
/// Returns the overhead of a transfer of this size.
Seconds time_of(const Overhead& overhead, Bytes size);

/// The overheads of a link, by what its ends do.
struct Overheads {
  Overhead send;
  Overhead receive;
  Overhead sum;  // each step of a ring collective
  friend bool operator==(const Overheads&, const Overheads&) = default;
};

/// A directed link: a transfer takes latency + bytes/bandwidth and occupies the link for
/// bytes/bandwidth.
struct Link {
  Seconds latency;
  double bandwidth_per_s = 1e12;  // bytes per second
  bool shared = false;            // by all transfers of a node; false: one link per pair of ranks
  /// Segments of a curve that has kinks or jumps, by ascending `from`. The last segment that a
  /// transfer reaches gives its time; the link is occupied for all of that except the link's
  /// latency.
  std::vector<LinkSegment> segments{};
  /// Bandwidth of one step of a ring collective, if it differs from that of a transfer. 0: it does
  /// not differ.
  double collective_bandwidth_per_s = 0;
  Seconds collective_latency{};
  std::vector<LinkSegment> collective_segments{};  // by the bytes of one step
  /// Bandwidth of one step of an all-reduce that tensor-parallel ranks make in the middle of an
  /// action. 0: the same as other all-reduces.
  double tensor_parallel_bandwidth_per_s = 0;
  Seconds tensor_parallel_latency{};
  std::vector<LinkSegment> tensor_parallel_segments{};
  /// Fraction of such an all-reduce that overlaps with the other action of a fused pair: from 0, as
  /// if the pair ran one after the other, to 1.
  double tensor_parallel_overlap = 0;
  Overheads overheads{};
  /// Ratio of the bandwidth that the joined nodes can send together to the bandwidth of the link.
  /// Each sender's bandwidth is divided by it.
  double oversubscription = 1;
  friend bool operator==(const Link&, const Link&) = default;
};

/// A link level beyond the links between nodes, such as a spine.
struct LinkLevel {
  std::string name;
  int group_nodes = 1;  // number of nodes in each group that it joins
  Link link;            // `shared` means by all transfers that leave or enter a group
  friend bool operator==(const LinkLevel&, const LinkLevel&) = default;
};

/// The network beyond a single link between nodes.
struct Fabric {
  /// True if the link between nodes joins only devices with equal indices in their nodes (rails).
  /// Other pairs of devices use the next level.
  bool rails = false;
  /// From the inside out; a group of one level consists of whole groups of the level before.
  std::vector<LinkLevel> levels;
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

/// A run of nodes whose devices differ from the device whose costs were measured.
struct NodeKind {
  int nodes = 1;
  Device device;
  double speed = 1;  // compute speed relative to the measured device
  friend bool operator==(const NodeKind&, const NodeKind&) = default;
};

/// The kinds of nodes in a heterogeneous cluster.
struct Mixture {
  /// In node order: the first kind has the first nodes; together they cover all nodes.
  std::vector<NodeKind> kinds;
  friend bool operator==(const Mixture&, const Mixture&) = default;
};

struct Cluster {
  std::string name;
  int nodes = 1;
  int devices_per_node = 1;
  Device device;
  Link within_node;
  Link between_nodes;
  /// Compute speed of each rank, relative to the measured device. Empty: all 1.
  std::vector<double> rank_speeds{};
  /// Memory limit of each rank in bytes, 0 for unlimited. Empty: the memory of its device.
  std::vector<double> rank_memory{};
  /// Further measured constants of the machine, for analytic times.
  std::optional<Machine> machine{};
  std::optional<Fabric> fabric{};    // absent: one kind of link joins all nodes
  std::optional<Mixture> mixture{};  // absent: all devices are `device`
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

int device_count(const Cluster& cluster);
/// Returns the kind of the node that has this device, or null if all nodes have the same kind.
const NodeKind* kind_of(const Cluster& cluster, int device);
/// Returns a device's compute speed relative to the measured device, by the kind of its node.
double kind_speed(const Cluster& cluster, int device);
/// Adds nodes (of the last kind, if there are several) until the cluster has this many devices.
/// Throws InputError that names `field` if they do not fill whole nodes.
Cluster with_nodes_for(Cluster cluster, int devices, const std::string& field);

/// Returns the memory limit of a rank; 0: unlimited.
Bytes memory_of(const Cluster& cluster, int rank);
/// Returns true if any rank has a memory limit.
bool limits_memory(const Cluster& cluster);
/// Returns the smallest memory limit of any rank; 0 if no rank has one.
Bytes least_memory(const Cluster& cluster);
/// Returns the cluster with unlimited memory on all ranks.
Cluster with_unlimited_memory(Cluster cluster);

/// Ranks fill the nodes in order; ranks past the last device wrap around to the first node.
int node_of(const Cluster& cluster, int rank);
/// Returns the innermost level that joins the two ranks: 0 within a node, 1 between nodes, then the
/// fabric's levels.
std::size_t level_between(const Cluster& cluster, int rank, int other_rank);
std::size_t level_count(const Cluster& cluster);
const Link& link_of_level(const Cluster& cluster, std::size_t level);
/// Returns "within a node", "between nodes", or "of the level NAME".
std::string level_words(const Cluster& cluster, std::size_t level);
const Link& link_between(const Cluster& cluster, int rank, int other_rank);
/// Returns the links of all levels, from the inside out.
std::vector<Link*> links_of(Cluster& cluster);
/// Returns true if the link of any level is shared by several ranks.
bool shares_links(const Cluster& cluster);
/// Returns the index of the unit that shares one uplink to a level: the rank's node for levels 0
/// and 1, and from level 2 on the group of nodes that this level joins to other groups.
int group_of(const Cluster& cluster, std::size_t level, int rank);
int group_count(const Cluster& cluster, std::size_t level);

/// Returns how long a transfer occupies its link: bytes over bandwidth, or as long as its segment
/// says. The transfer arrives one latency later.
Seconds occupancy(const Link& link, Bytes size);

/// Time in which a ring of n devices passes pieces of size/n around in `rounds` · (n − 1) steps.
struct RingTime {
  Seconds held;     // occupancy of the links
  Seconds latency;  // sum over all steps
};
RingTime ring_time(const Link& link, Bytes size, double devices, int rounds);
/// Returns the time of an all-reduce of `size` bytes among n tensor-parallel ranks, as such a ring.
RingTime shard_sum_time(const Link& link, Bytes size, double devices);
/// Returns for how long such a ring keeps each of its devices from computing.
Seconds ring_overhead(const Link& link, Bytes size, double devices, int rounds);

Json to_json(const Cluster& cluster);
/// Reads the cluster from the current JSON object, so that a scenario can contain a cluster inline.
Cluster read_cluster(JsonObject& object);
Cluster cluster_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
