#include "pipewright/plan/cluster/node_orders.hpp"

#include "pipewright/plan/cluster/even_memory.hpp"
#include "support/catch.hpp"

namespace node_orders_test {

using namespace pipewright::plan;

NodeKind kind(const char* name, int nodes, double speed, std::int64_t memory = 0) {
  return {.nodes = nodes, .device = {.name = name, .memory = {memory}}, .speed = speed};
}

Cluster mixed(std::vector<NodeKind> kinds) {
  Cluster cluster;
  cluster.nodes = 0;
  for (const NodeKind& one : kinds)
    cluster.nodes += one.nodes;
  cluster.devices_per_node = 2;
  cluster.mixture = {.kinds = std::move(kinds)};
  return cluster;
}

/// Names of the kinds in each order, such as "new old".
std::vector<std::string> words_of(const std::vector<NodeOrder>& orders) {
  std::vector<std::string> words;
  for (const NodeOrder& order : orders) {
    std::string& row = words.emplace_back();
    for (const NodeKind& one : order.cluster.mixture->kinds)
      row += (row.empty() ? "" : " ") + one.device.name;
  }
  return words;
}

using Words = std::vector<std::string>;

TEST_CASE("Ranks fill kinds of nodes in every order, starting with the file's", "[plan][cluster]") {
  const Cluster cluster = mixed({kind("new", 2, 1), kind("old", 1, 0.5)});
  const auto orders = node_orders(cluster, 6);
  CHECK(words_of(orders) == Words{"new old", "old new"});
  CHECK(orders[0].cluster == cluster);
  CHECK(orders[0].nodes == std::vector{0, 1, 2});
  CHECK(orders[1].nodes == std::vector{2, 0, 1});
  CHECK(kind_speed(orders[1].cluster, 1) == 0.5);
  CHECK(kind_speed(orders[1].cluster, 2) == 1);
  CHECK(node_orders(mixed({kind("a", 1, 1), kind("b", 1, 2), kind("c", 1, 3)}), 6).size() == 6);
  // Orders that differ only in nodes that are not filled count as one.
  CHECK(words_of(node_orders(mixed({kind("a", 1, 1), kind("b", 1, 2), kind("c", 1, 3)}), 1)) ==
        Words{"a b c", "b a c", "c a b"});
  CHECK(node_orders(mixed({kind("a", 1, 1), kind("b", 1, 2), kind("a", 1, 1)}), 6).size() == 3);
}

TEST_CASE("With many kinds, the fast ones come first, or the slow ones", "[plan][cluster]") {
  const Cluster cluster =
      mixed({kind("c", 1, 3), kind("a", 1, 1), kind("e", 1, 5), kind("b", 1, 2), kind("d", 1, 4)});
  CHECK(words_of(node_orders(cluster, 10)) == Words{"c a e b d", "e d c b a", "a b c d e"});
}

TEST_CASE("Nodes are exchanged only if links do not distinguish them", "[plan][cluster]") {
  Cluster cluster = mixed({kind("new", 4, 1), kind("old", 2, 0.5)});
  cluster.fabric = {.levels = {{"leaf", 2, {}}}};
  CHECK(node_orders(cluster, 12).size() == 2);
  cluster.fabric->levels.push_back({"spine", 4, {}});
  CHECK(node_orders(cluster, 12).size() == 1);
  cluster.fabric.reset();
  cluster.mixture.reset();
  CHECK(node_orders(cluster, 12).size() == 1);
}

TEST_CASE("Ranks with different memory are reduced to one limit", "[plan][cluster]") {
  const Cluster cluster = mixed({kind("new", 2, 1, 80), kind("old", 1, 0.5, 40)});
  CHECK(largest_memory(cluster) == Bytes{80});
  const std::vector<Bytes> memory{{80}, {40}};
  CHECK(normalized_peak({{80}, {40}}, memory, {80}) == Bytes{80});
  CHECK(normalized_peak({{10}, {41}}, memory, {80}) == Bytes{81});
  CHECK(normalized_peak({{81}, {1}}, memory, {80}) == Bytes{81});
  CHECK(normalized_peak({{90}, {30}}, {{0}, {40}}, {40}) == Bytes{40});  // the first is unlimited
  CHECK(normalized_peak({{90}, {30}}, {{0}, {0}}, {0}) == Bytes{90});
}

}  // namespace node_orders_test
