#include "pipewright/plan/cluster.hpp"

#include "pipewright/plan/json_document.hpp"

namespace pipewright::plan {
namespace {

Json to_json(const Device& device) {
  return {{"name", device.name},
          {"memory_bytes", device.memory.value},
          {"flops_per_s", device.flops_per_s},
          {"memory_bandwidth_per_s", device.memory_bandwidth_per_s}};
}

Json to_json(const Link& link) {
  return {{"latency_s", link.latency.value},
          {"bandwidth_per_s", link.bandwidth_per_s},
          {"shared", link.shared}};
}

Device read_device(JsonObject& cluster) {
  const std::string pointer = cluster.child("device");
  JsonObject object(cluster.diagnostics(), pointer);
  return {.name = object.text("name"),
          .memory = object.bytes("memory_bytes", Bytes{}),
          .flops_per_s = object.number("flops_per_s", at_least(0), 0),
          .memory_bandwidth_per_s = object.number("memory_bandwidth_per_s", at_least(0), 0)};
}

Link read_link(JsonObject& cluster, const std::string& key, bool required) {
  const std::string pointer = cluster.child(key, required);
  if (!cluster.has(key))
    return {};
  JsonObject object(cluster.diagnostics(), pointer);
  return {.latency = object.seconds("latency_s"),
          .bandwidth_per_s = object.number("bandwidth_per_s", more_than(0)),
          .shared = object.flag("shared", false)};
}

}  // namespace

int node_of(const Cluster& cluster, int rank) {
  return rank / cluster.devices_per_node % cluster.nodes;
}

const Link& link_between(const Cluster& cluster, int rank, int other_rank) {
  const bool same_node = node_of(cluster, rank) == node_of(cluster, other_rank);
  return same_node ? cluster.within_node : cluster.between_nodes;
}

Seconds occupancy(const Link& link, Bytes size) {
  return {static_cast<double>(size.value) / link.bandwidth_per_s};
}

Json to_json(const Cluster& cluster) {
  return {{"format", "pipewright/cluster/1"},
          {"name", cluster.name},
          {"nodes", cluster.nodes},
          {"devices_per_node", cluster.devices_per_node},
          {"device", to_json(cluster.device)},
          {"within_node", to_json(cluster.within_node)},
          {"between_nodes", to_json(cluster.between_nodes)},
          {"rank_speeds", cluster.rank_speeds}};
}

Cluster read_cluster(JsonObject& object) {
  Cluster cluster;
  cluster.name = object.text("name");
  cluster.nodes = object.integer("nodes", at_least(1));
  cluster.devices_per_node = object.integer("devices_per_node", at_least(1));
  cluster.device = read_device(object);
  cluster.within_node = read_link(object, "within_node", true);
  cluster.between_nodes = read_link(object, "between_nodes", cluster.nodes > 1);
  cluster.rank_speeds = object.numbers("rank_speeds", more_than(0), cluster.rank_speeds);
  return cluster;
}

Cluster cluster_from_json(const JsonDocument& document) {
  return read_document<Cluster>(document, "pipewright/cluster/1", read_cluster);
}

}  // namespace pipewright::plan
