#include "pipewright/plan/cluster/cluster.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "scenario/scenario_fields.hpp"

namespace pipewright::plan {
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
  Json json = fields_json(cluster);
  json["format"] = "pipewright/cluster/1";
  return json;
}

Cluster read_cluster(JsonObject& object) { return read_fields<Cluster>(object); }

Cluster cluster_from_json(const JsonDocument& document) {
  return read_document<Cluster>(document, "pipewright/cluster/1", read_cluster);
}

}  // namespace pipewright::plan
