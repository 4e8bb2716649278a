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
      object.error(key, fmt::format("its {} must begin at rising sizes: {} stands behind {}", whose,
                                    segments[s].from.value, segments[s - 1].from.value));
}

void check_segments(JsonObject& object, const char* key, const Link& link) {
  check_segments(object, key, "segments", link.segments);
  check_segments(object, key, "sum_segments", link.sum_segments);
  check_segments(object, key, "shard_segments", link.shard_segments);
  check_segments(object, key, "send_overhead_segments", link.overheads.send.segments);
  check_segments(object, key, "receive_overhead_segments", link.overheads.receive.segments);
  check_segments(object, key, "sum_overhead_segments", link.overheads.sum.segments);
}

/// The last one that so many bytes reach; null: none.
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

}  // namespace

int device_count(const Cluster& cluster) { return cluster.nodes * cluster.devices_per_node; }

Cluster with_nodes_for(Cluster cluster, int devices, const std::string& field) {
  const int in_node = cluster.devices_per_node;
  if (devices > in_node && devices % in_node != 0)
    throw InputError(fmt::format("{}: {} are not whole nodes of {}: {} or {} would be", field,
                                 devices, in_node, devices / in_node * in_node,
                                 (devices / in_node + 1) * in_node));
  cluster.nodes = std::max(cluster.nodes, devices / in_node);
  return cluster;
}

Bytes memory_of(const Cluster& cluster, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return at < cluster.rank_memory.size() ? whole_bytes(cluster.rank_memory[at])
                                         : cluster.device.memory;
}

bool limits_memory(const Cluster& cluster) { return least_memory(cluster) > Bytes{}; }

Bytes least_memory(const Cluster& cluster) {
  if (cluster.rank_memory.empty())
    return cluster.device.memory;
  Bytes least;
  for (int rank = 0; rank < static_cast<int>(cluster.rank_memory.size()); ++rank)
    if (const Bytes own = memory_of(cluster, rank); own > Bytes{})
      least = least > Bytes{} ? std::min(least, own) : own;
  return least;
}

Cluster roomy(Cluster cluster) {
  cluster.device.memory = {};
  cluster.rank_memory.clear();
  return cluster;
}

int node_of(const Cluster& cluster, int rank) {
  return rank / cluster.devices_per_node % cluster.nodes;
}

const Link& link_between(const Cluster& cluster, int rank, int other_rank) {
  const bool same_node = node_of(cluster, rank) == node_of(cluster, other_rank);
  return same_node ? cluster.within_node : cluster.between_nodes;
}

Seconds occupancy(const Link& link, Bytes size) {
  const LinkSegment* const segment = segment_of(link.segments, size);
  if (segment == nullptr)
    return {static_cast<double>(size.value) / link.bandwidth_per_s};
  return std::max(Seconds{}, time_of(*segment, size) - link.latency);
}

Seconds time_of(const Overhead& overhead, Bytes size) {
  if (const LinkSegment* const segment = segment_of(overhead.segments, size))
    return time_of(*segment, size);
  if (overhead.bandwidth_per_s == 0)
    return overhead.each;
  return overhead.each + Seconds{static_cast<double>(size.value) / overhead.bandwidth_per_s};
}

RingTime ring_time(const Link& link, Bytes size, double devices, int rounds) {
  if (link.sum_bandwidth_per_s > 0) {
    const Link ring{.latency = link.sum_latency,
                    .bandwidth_per_s = link.sum_bandwidth_per_s,
                    .segments = link.sum_segments};
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
  if (link.shard_bandwidth_per_s > 0)
    return ring_time({.latency = link.shard_latency,
                      .bandwidth_per_s = link.shard_bandwidth_per_s,
                      .segments = link.shard_segments},
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
  if (const std::string fault = cluster.machine ? fault_of(cluster.machine->reductions) : "";
      !fault.empty())
    object.error("machine", "reductions: " + fault);
  return cluster;
}

Cluster cluster_from_json(const JsonDocument& document) {
  return read_document<Cluster>(document, "pipewright/cluster/1", read_cluster);
}

}  // namespace pipewright::plan
