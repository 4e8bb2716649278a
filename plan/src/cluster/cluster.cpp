#include "pipewright/plan/cluster/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cluster_fields.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::plan {
namespace {

void check_segments(JsonObject& object, const char* key, const char* whose,
                    const std::vector<LinkSegment>& segments) {
  for (std::size_t s = 1; s < segments.size(); ++s)
    if (segments[s].from <= segments[s - 1].from)
      object.error(key, fmt::format("its {} must begin at increasing sizes: {} comes after {}",
                                    whose, segments[s].from.value, segments[s - 1].from.value));
}

void check_segments(JsonObject& object, const char* key, const Link& link) {
  check_segments(object, key, "segments", link.segments);
  check_segments(object, key, "collective_segments", link.collective_segments);
  check_segments(object, key, "tensor_parallel_segments", link.tensor_parallel_segments);
  check_segments(object, key, "send_overhead_segments", link.overheads.send.segments);
  check_segments(object, key, "receive_overhead_segments", link.overheads.receive.segments);
  check_segments(object, key, "collective_overhead_segments", link.overheads.sum.segments);
}

/// Returns the last segment that a transfer of `size` reaches, or null if there is none.
const LinkSegment* segment_of(const std::vector<LinkSegment>& segments, Bytes size) {
  const auto behind =
      std::upper_bound(segments.begin(), segments.end(), size,
                       [](Bytes wanted, const LinkSegment& s) { return wanted < s.from; });
  return behind == segments.begin() ? nullptr : &*std::prev(behind);
}

Seconds time_of(const LinkSegment& segment, Bytes size) {
  const auto beyond = static_cast<double>((size - segment.from).value);
  return segment.time + Seconds{beyond / segment.bandwidth_per_s};
}

/// Checks that each level's groups consist of whole groups of the level before, and are smaller
/// than the cluster.
void check_fabric(JsonObject& object, const Cluster& cluster) {
  if (!cluster.fabric)
    return;
  if (cluster.fabric->rails && cluster.fabric->levels.empty())
    object.error("fabric",
                 "rails join only devices with the same position: other devices need a level");
  int inner = 1;
  for (const LinkLevel& level : cluster.fabric->levels) {
    const bool whole = level.group_nodes % inner == 0;
    if (!whole || (level.group_nodes <= inner && inner > 1))
      object.error(
          "fabric",
          fmt::format("the level {} joins groups of {} nodes: it must be a larger multiple of {}",
                      level.name, level.group_nodes, inner));
    inner = std::max(1, level.group_nodes);
    check_segments(object, "fabric", level.link);
  }
}

void check_mixture(JsonObject& object, const Cluster& cluster) {
  if (!cluster.mixture)
    return;
  int nodes = 0;
  for (const NodeKind& kind : cluster.mixture->kinds)
    nodes += kind.nodes;
  if (nodes != cluster.nodes)
    object.error("mixture", fmt::format("its kinds have {} nodes, but the cluster has {}", nodes,
                                        cluster.nodes));
}

}  // namespace

int device_count(const Cluster& cluster) { return cluster.nodes * cluster.devices_per_node; }

const NodeKind* kind_of(const Cluster& cluster, int device) {
  if (!cluster.mixture)
    return nullptr;
  int node = node_of(cluster, device);
  for (const NodeKind& kind : cluster.mixture->kinds)
    if ((node -= kind.nodes) < 0)
      return &kind;
  return nullptr;
}

double kind_speed(const Cluster& cluster, int device) {
  const NodeKind* const kind = kind_of(cluster, device);
  return kind == nullptr ? 1 : kind->speed;
}

Cluster with_nodes_for(Cluster cluster, int devices, const std::string& field) {
  const int in_node = cluster.devices_per_node;
  if (constexpr int most = 1'000'000; devices > most)
    throw InputError(fmt::format("{}: {} devices: at most {} are possible", field, devices, most));
  if (devices > in_node && devices % in_node != 0)
    throw InputError(fmt::format("{}: {} are not whole nodes of {}: {} or {} would be", field,
                                 devices, in_node, devices / in_node * in_node,
                                 (devices / in_node + 1) * in_node));
  const int added = std::max(0, devices / in_node - cluster.nodes);
  cluster.nodes += added;
  if (cluster.mixture && !cluster.mixture->kinds.empty())
    cluster.mixture->kinds.back().nodes += added;
  return cluster;
}

Bytes memory_of(const Cluster& cluster, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  if (at < cluster.rank_memory.size())
    return whole_bytes(cluster.rank_memory[at]);
  const NodeKind* const kind = kind_of(cluster, rank);
  return kind == nullptr ? cluster.device.memory : kind->device.memory;
}

bool limits_memory(const Cluster& cluster) { return least_memory(cluster) > Bytes{}; }

Bytes least_memory(const Cluster& cluster) {
  Bytes least;
  const auto add = [&](Bytes own) {
    if (own > Bytes{})
      least = least > Bytes{} ? std::min(least, own) : own;
  };
  for (int rank = 0; rank < static_cast<int>(cluster.rank_memory.size()); ++rank)
    add(memory_of(cluster, rank));
  if (!cluster.rank_memory.empty())
    return least;
  if (!cluster.mixture)
    return cluster.device.memory;
  for (const NodeKind& kind : cluster.mixture->kinds)
    add(kind.device.memory);
  return least;
}

Cluster with_unlimited_memory(Cluster cluster) {
  cluster.device.memory = {};
  cluster.rank_memory.clear();
  if (cluster.mixture)
    for (NodeKind& kind : cluster.mixture->kinds)
      kind.device.memory = {};
  return cluster;
}

int node_of(const Cluster& cluster, int rank) {
  return rank / cluster.devices_per_node % cluster.nodes;
}

std::size_t level_between(const Cluster& cluster, int rank, int other_rank) {
  const int node = node_of(cluster, rank), other = node_of(cluster, other_rank);
  if (node == other)
    return 0;
  if (!cluster.fabric)
    return 1;
  const std::vector<LinkLevel>& levels = cluster.fabric->levels;
  std::size_t outermost = 1 + levels.size();
  while (outermost > 1 &&
         node / levels[outermost - 2].group_nodes == other / levels[outermost - 2].group_nodes)
    --outermost;
  const bool off_rail =
      cluster.fabric->rails && (rank - other_rank) % cluster.devices_per_node != 0;
  return off_rail && !levels.empty() ? std::max<std::size_t>(2, outermost) : outermost;
}

std::size_t level_count(const Cluster& cluster) {
  return 2 + (cluster.fabric ? cluster.fabric->levels.size() : 0);
}

const Link& link_of_level(const Cluster& cluster, std::size_t level) {
  if (level == 0)
    return cluster.within_node;
  return level == 1 ? cluster.between_nodes : cluster.fabric->levels[level - 2].link;
}

std::string level_words(const Cluster& cluster, std::size_t level) {
  if (level == 0)
    return "within a node";
  return level == 1 ? "between nodes" : "of the level " + cluster.fabric->levels[level - 2].name;
}

const Link& link_between(const Cluster& cluster, int rank, int other_rank) {
  return link_of_level(cluster, level_between(cluster, rank, other_rank));
}

std::vector<Link*> links_of(Cluster& cluster) {
  std::vector<Link*> links{&cluster.within_node, &cluster.between_nodes};
  if (cluster.fabric)
    for (LinkLevel& level : cluster.fabric->levels)
      links.push_back(&level.link);
  return links;
}

bool shares_links(const Cluster& cluster) {
  for (std::size_t level = 0; level < level_count(cluster); ++level)
    if (link_of_level(cluster, level).shared)
      return true;
  return false;
}

int group_of(const Cluster& cluster, std::size_t level, int rank) {
  const int node = node_of(cluster, rank);
  return level < 2 ? node : node / cluster.fabric->levels[level - 2].group_nodes;
}

int group_count(const Cluster& cluster, std::size_t level) {
  return 1 + group_of(cluster, level, device_count(cluster) - 1);
}

Seconds occupancy(const Link& link, Bytes size) {
  const LinkSegment* const segment = segment_of(link.segments, size);
  const Seconds alone = segment == nullptr
                            ? Seconds{static_cast<double>(size.value) / link.bandwidth_per_s}
                            : std::max(Seconds{}, time_of(*segment, size) - link.latency);
  return alone * link.oversubscription;
}

Seconds time_of(const Overhead& overhead, Bytes size) {
  if (const LinkSegment* const segment = segment_of(overhead.segments, size))
    return time_of(*segment, size);
  if (overhead.bandwidth_per_s == 0)
    return overhead.each;
  return overhead.each + Seconds{static_cast<double>(size.value) / overhead.bandwidth_per_s};
}

RingTime ring_time(const Link& link, Bytes size, double devices, int rounds) {
  if (link.collective_bandwidth_per_s > 0) {
    const Link ring{.latency = link.collective_latency,
                    .bandwidth_per_s = link.collective_bandwidth_per_s,
                    .segments = link.collective_segments,
                    .oversubscription = link.oversubscription};
    return ring_time(ring, size, devices, rounds);
  }
  const double steps = rounds * (devices - 1);
  const Seconds latency{steps * link.latency.value};
  if (link.segments.empty())
    return {{steps / devices * occupancy(link, size).value}, latency};
  const Bytes piece = whole_bytes(static_cast<double>(size.value) / devices);
  return {occupancy(link, piece) * steps, latency};
}

RingTime shard_sum_time(const Link& link, Bytes size, double devices) {
  constexpr int rounds = 2;
  if (link.tensor_parallel_bandwidth_per_s > 0)
    return ring_time({.latency = link.tensor_parallel_latency,
                      .bandwidth_per_s = link.tensor_parallel_bandwidth_per_s,
                      .segments = link.tensor_parallel_segments,
                      .oversubscription = link.oversubscription},
                     size, devices, rounds);
  return ring_time(link, size, devices, rounds);
}

Seconds ring_overhead(const Link& link, Bytes size, double devices, int rounds) {
  const Bytes piece = whole_bytes(static_cast<double>(size.value) / devices);
  return time_of(link.overheads.sum, piece) * (rounds * (devices - 1));
}

Json to_json(const Cluster& cluster) {
  Json json = fields_json(cluster);
  json["format"] = "pipewright/cluster/1";
  return json;
}

Cluster read_cluster(JsonObject& object) {
  const auto cluster = read_fields<Cluster>(object);
  check_segments(object, "within_node", cluster.within_node);
  check_segments(object, "between_nodes", cluster.between_nodes);
  check_fabric(object, cluster);
  check_mixture(object, cluster);
  if (const std::string fault = cluster.machine ? fault_of(cluster.machine->reductions) : "";
      !fault.empty())
    object.error("machine", "reductions: " + fault);
  return cluster;
}

Cluster cluster_from_json(const JsonDocument& document) {
  return read_document<Cluster>(document, "pipewright/cluster/1", read_cluster);
}

}  // namespace pipewright::plan
