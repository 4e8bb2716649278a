#include "pipewright/plan/cluster/cluster.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "scenario/scenario_fields.hpp"

namespace pipewright::plan {
namespace {

template <class Struct>
Struct read_child(JsonObject& cluster, const char* key) {
  const std::string pointer = cluster.child(key);
  JsonObject object(cluster.diagnostics(), pointer);
  return read_fields<Struct>(object);
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
          {"device", fields_json(cluster.device)},
          {"within_node", fields_json(cluster.within_node)},
          {"between_nodes", fields_json(cluster.between_nodes)},
          {"rank_speeds", cluster.rank_speeds}};
}

Cluster read_cluster(JsonObject& object) {
  Cluster cluster;
  cluster.name = object.text("name");
  cluster.nodes = object.integer("nodes", at_least(1));
  cluster.devices_per_node = object.integer("devices_per_node", at_least(1));
  cluster.device = read_child<Device>(object, "device");
  cluster.within_node = read_child<Link>(object, "within_node");
  if (cluster.nodes > 1 || object.has("between_nodes"))
    cluster.between_nodes = read_child<Link>(object, "between_nodes");
  cluster.rank_speeds = object.numbers("rank_speeds", more_than(0), cluster.rank_speeds);
  return cluster;
}

Cluster cluster_from_json(const JsonDocument& document) {
  return read_document<Cluster>(document, "pipewright/cluster/1", read_cluster);
}

}  // namespace pipewright::plan
