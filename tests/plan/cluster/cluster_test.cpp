#include "pipewright/plan/cluster/cluster.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace cluster_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

Cluster two_nodes() {
  return {.name = "two",
          .nodes = 2,
          .devices_per_node = 4,
          .device = {.name = "gpu",
                     .memory = {80'000'000'000},
                     .flops_per_s = 312e12,
                     .memory_bandwidth_per_s = 2.039e12},
          .within_node = {.latency = {3e-6}, .bandwidth_per_s = 3e11, .shared = false},
          .between_nodes = {.latency = {1e-5}, .bandwidth_per_s = 2.5e10, .shared = true}};
}

Cluster read(const std::string& text) {
  return cluster_from_json(JsonDocument::parse(text, "cluster.json"));
}

TEST_CASE("A cluster reads back as it was written", "[plan][cluster]") {
  CHECK(read(to_json(two_nodes()).dump(2)) == two_nodes());
}

TEST_CASE("Ranks fill the nodes in order and wrap around after the last", "[plan][cluster]") {
  const Cluster cluster = two_nodes();
  CHECK(link_between(cluster, 0, 3) == cluster.within_node);
  CHECK(link_between(cluster, 3, 4) == cluster.between_nodes);
  CHECK(link_between(cluster, 4, 7) == cluster.within_node);
  CHECK(link_between(cluster, 7, 8) == cluster.between_nodes);
  CHECK(link_between(cluster, 0, 8) == cluster.within_node);
}

TEST_CASE("More ranks than devices of a single node still share that node", "[plan][cluster]") {
  Cluster cluster = two_nodes();
  cluster.nodes = 1;
  CHECK(link_between(cluster, 3, 4) == cluster.within_node);
}

/// Eight nodes of two devices: pairs of nodes share a leaf switch, two leaves share a spine, and a
/// core joins both spines.
Cluster four_levels() {
  Cluster cluster = two_nodes();
  cluster.nodes = 8;
  cluster.devices_per_node = 2;
  cluster.fabric = {.levels = {{"spine", 2, {.latency = {2e-5}, .bandwidth_per_s = 1e10}},
                               {"core", 4, {.latency = {4e-5}, .bandwidth_per_s = 5e9}}}};
  return cluster;
}

TEST_CASE("Two devices talk on the innermost level that has both", "[plan][cluster]") {
  Cluster cluster = four_levels();
  const auto levels_from_0 = [&] {
    std::vector<std::size_t> levels;
    for (int device = 0; device < device_count(cluster); ++device)
      levels.push_back(level_between(cluster, 0, device));
    return levels;
  };
  CHECK(levels_from_0() ==
        std::vector<std::size_t>{0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3});
  CHECK(link_between(cluster, 3, 4) == cluster.fabric->levels[0].link);
  CHECK(level_between(cluster, 4, 7) == 1);
  CHECK(level_between(cluster, 16, 1) == 0);  // ranks past the last device wrap around
  cluster.fabric->rails = true;  // device 1 of a node cannot reach a device 0 on its rail
  CHECK(levels_from_0() ==
        std::vector<std::size_t>{0, 0, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3});
  CHECK(level_words(cluster, 2) == "of the level spine");
  CHECK(group_count(cluster, 1) == 8);
  CHECK(group_count(cluster, 3) == 2);
  CHECK(group_of(cluster, 2, 9) == 2);
}

TEST_CASE("Oversubscription divides the bandwidth of a link", "[plan][cluster]") {
  Link link{.latency = {0.5}, .bandwidth_per_s = 100, .oversubscription = 4};
  CHECK(occupancy(link, Bytes{25}) == Seconds{1});
  CHECK(ring_time(link, Bytes{100}, 2, 2).held == Seconds{4});
  link.collective_bandwidth_per_s = 200;
  CHECK(ring_time(link, Bytes{100}, 2, 2).held == Seconds{2});
}

TEST_CASE("Levels and kinds of nodes read back, and are written only if there are any",
          "[plan][cluster]") {
  CHECK_FALSE(to_json(two_nodes()).contains("fabric"));
  CHECK_FALSE(to_json(two_nodes()).contains("mixture"));
  Cluster cluster = four_levels();
  cluster.fabric->levels[1].link.oversubscription = 7;
  cluster.fabric->levels[1].link.shared = true;
  cluster.mixture = {.kinds = {{.nodes = 6, .device = {.name = "new", .memory = {100}}, .speed = 2},
                               {.nodes = 2, .device = {.name = "old", .memory = {50}}}}};
  CHECK(read(to_json(cluster).dump(2)) == cluster);
  CHECK(kind_speed(cluster, 11) == 2);
  CHECK(kind_speed(cluster, 12) == 1);
  CHECK(memory_of(cluster, 12) == Bytes{50});
  CHECK(least_memory(cluster) == Bytes{50});
  CHECK_FALSE(limits_memory(with_unlimited_memory(cluster)));
}

TEST_CASE("Levels that do not nest, and kinds with a wrong number of nodes, are rejected",
          "[plan][cluster]") {
  const auto error_in = [](const Cluster& cluster) {
    return error_of([&] { read(to_json(cluster).dump()); });
  };
  Cluster cluster = four_levels();
  cluster.fabric->levels[1].group_nodes = 3;
  CHECK(error_in(cluster).find(
            "the level core joins groups of 3 nodes: it must be a larger multiple of 2") !=
        std::string::npos);
  cluster = four_levels();
  cluster.fabric = {.rails = true, .levels = {}};
  CHECK(error_in(cluster).find("other devices need a level") != std::string::npos);
  cluster = four_levels();
  cluster.mixture = {.kinds = {{.nodes = 6, .device = {.name = "new", .memory = {}}}}};
  CHECK(error_in(cluster).find("its kinds have 6 nodes, but the cluster has 8") !=
        std::string::npos);
}

TEST_CASE("A transfer occupies its link for the bytes over the bandwidth", "[plan][cluster]") {
  const Link link{.latency = {0.5}, .bandwidth_per_s = 100, .shared = false};
  CHECK(occupancy(link, Bytes{25}) == Seconds{0.25});
  CHECK(occupancy(link, Bytes{0}) == Seconds{0});
}

/// A link with another line beyond 1000 bytes, and its own line for ring collectives.
Link bent() {
  return {.latency = {0.5},
          .bandwidth_per_s = 100,
          .segments = {{.from = {1000}, .time = {4.5}, .bandwidth_per_s = 400}},
          .collective_bandwidth_per_s = 50,
          .collective_latency = {3},
          .tensor_parallel_bandwidth_per_s = 70,
          .tensor_parallel_latency = {2},
          .tensor_parallel_segments = {{.from = {2000}, .time = {40}, .bandwidth_per_s = 90}},
          .tensor_parallel_overlap = 0.75,
          .overheads = {.send = {{0.125}, 200},
                        .receive = {{0.25}, 0, {{{400}, {3}, 200}}},
                        .sum = {{0.5}, 100}}};
}

TEST_CASE("From a segment's first byte on, the segment gives a transfer's time",
          "[plan][cluster]") {
  CHECK(occupancy(bent(), Bytes{999}) == Seconds{9.99});
  CHECK(occupancy(bent(), Bytes{1000}) == Seconds{4});
  CHECK(occupancy(bent(), Bytes{1400}) == Seconds{4 + 1});
  Link early = bent();
  early.segments[0] = {.from = {0}, .time = {}, .bandwidth_per_s = 400};
  CHECK(occupancy(early, Bytes{40}) == Seconds{0});  // it still arrives a latency later
}

TEST_CASE("A ring's steps take as long as transfers of a piece, or as measured all-reduces",
          "[plan][cluster]") {
  const auto time = [](const Link& link) {
    const RingTime ring = ring_time(link, Bytes{4000}, 4, 2);
    return ring.held + ring.latency;
  };
  const Link plain{.latency = {0.5}, .bandwidth_per_s = 100};
  CHECK(time(plain) == Seconds{2 * 3 * (0.5 + 10)});
  CHECK(time(bent()) == Seconds{2 * 3 * (3 + 20)});
  Link without = bent();
  without.collective_bandwidth_per_s = 0;
  CHECK(time(without) == Seconds{2 * 3 * 4.5});
}

TEST_CASE("The overhead of a transfer may grow with its bytes", "[plan][cluster]") {
  CHECK(time_of(bent().overheads.send, Bytes{100}) == Seconds{0.625});
  CHECK(time_of(bent().overheads.receive, Bytes{100}) == Seconds{0.25});
  CHECK(time_of(bent().overheads.receive, Bytes{600}) == Seconds{4});
  CHECK(ring_overhead(bent(), Bytes{4000}, 4, 2) == Seconds{2 * 3 * (0.5 + 10)});
}

TEST_CASE(
    "A cluster with segments reads back as it was written, and descending segments are rejected",
    "[plan][cluster]") {
  Cluster cluster = two_nodes();
  cluster.between_nodes = bent();
  CHECK(read(to_json(cluster).dump(2)) == cluster);
  cluster.between_nodes.segments.push_back({.from = {1000}, .time = {}, .bandwidth_per_s = 1});
  CHECK(error_of([&] { read(to_json(cluster).dump()); })
            .find("/between_nodes: its segments must begin at increasing sizes: 1000 comes after "
                  "1000") != std::string::npos);
}

TEST_CASE("One node needs no link between nodes, two do", "[plan][cluster]") {
  const auto text = [](int nodes) {
    return R"({"format": "pipewright/cluster/1", "name": "c", "devices_per_node": 2,
"device": {"name": "cpu"}, "within_node": {"latency_s": 0, "bandwidth_per_s": 1}, "nodes": )" +
           std::to_string(nodes) + "}";
  };
  CHECK(read(text(1)).between_nodes == Link{});
  CHECK(error_of([&] { read(text(2)); }) == "cluster.json:1:1: /: \"between_nodes\" is missing");
}

TEST_CASE("All impossible numbers of a cluster are reported", "[plan][cluster]") {
  CHECK(error_of([] {
          read(R"({"format": "pipewright/cluster/1", "name": "c", "nodes": 0,
"devices_per_node": 2, "device": {"name": "cpu", "memory_bytes": -1},
"within_node": {"latency_s": -1, "bandwidth_per_s": 0}})");
        }) ==
        "cluster.json:1:49: /nodes: 0 is not possible: it must be at least 1 and at most "
        "1000000\n"
        "cluster.json:2:50: /device/memory_bytes: -1 is not possible: it must be at least 0 and at "
        "most 9e+18\n"
        "cluster.json:3:17: /within_node/latency_s: -1 is not possible: it must be at least 0\n"
        "cluster.json:3:34: /within_node/bandwidth_per_s: 0 is not possible: it must be more than "
        "0");
}

}  // namespace cluster_test
