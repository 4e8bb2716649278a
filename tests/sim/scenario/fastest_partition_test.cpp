#include "pipewright/sim/scenario/fastest_partition.hpp"

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <random>

#include "pipewright/plan/costs/stage_costs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/partitioners/balanced.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "pipewright/sim/scenario/simulate.hpp"
#include "support/catch.hpp"

namespace fastest_partition_test {

using namespace pipewright::plan;
using namespace pipewright::sim;

LayerCosts random_costs(int layers, std::mt19937& random) {
  LayerCosts costs;
  for (int layer = 0; layer < layers; ++layer) {
    LayerCost cost;
    cost.forward = {std::uniform_real_distribution(0.5, 2.0)(random)};
    cost.input_gradient = cost.forward;
    cost.weight_gradient = cost.forward;
    cost.output = {std::uniform_int_distribution(1, 40)(random)};
    cost.activation = {10};
    costs.layers.push_back(cost);
  }
  return costs;
}

Cluster cluster_of(int ranks, double bandwidth_per_s) {
  Cluster cluster;
  cluster.devices_per_node = ranks;
  cluster.within_node = {.latency = {}, .bandwidth_per_s = bandwidth_per_s, .shared = false};
  return cluster;
}

double iteration(const Program& program, const LayerCosts& costs, const Cluster& cluster,
                 const std::vector<int>& boundaries) {
  const auto stages = stage_costs(costs, Partition{boundaries});
  return std::get<Completed>(simulate(program, stages, cluster)).timeline.length.value;
}

/// Returns the shortest iteration over all partitions into four stages.
double best_of_four(const Program& program, const LayerCosts& costs, const Cluster& cluster) {
  const auto layers = static_cast<int>(costs.layers.size());
  double best = std::numeric_limits<double>::infinity();
  for (int a = 1; a < layers; ++a)
    for (int b = a + 1; b < layers; ++b)
      for (int c = b + 1; c < layers; ++c)
        best = std::min(best, iteration(program, costs, cluster, {0, a, b, c, layers}));
  return best;
}

TEST_CASE("Of few partitions the fastest is found", "[sim][partition]") {
  std::mt19937 random(2);
  for (int round = 0; round < 20; ++round) {
    const auto costs = random_costs(9, random);
    const auto cluster = cluster_of(4, round % 2 == 0 ? 5 : 1e12);
    const auto program = lower(make_schedule(round % 3 == 0 ? "gpipe" : "1f1b", 4, 6));
    const auto found = fastest_partition(program, costs, cluster);
    CHECK(found.exact);
    CHECK(found.simulated == 56);  // 8 over 3
    CHECK(found.iteration.value == Approx(best_of_four(program, costs, cluster)));
    CHECK(found.iteration <= found.balanced);
  }
}

TEST_CASE("The faster kind of node gets more layers", "[sim][partition]") {
  LayerCosts costs;
  costs.layers.resize(8);
  for (LayerCost& layer : costs.layers)
    layer.forward = layer.input_gradient = layer.weight_gradient = {1};
  Cluster cluster = cluster_of(2, 1e12);
  cluster.nodes = 2;
  cluster.devices_per_node = 1;
  cluster.mixture = {.kinds = {{.nodes = 1, .device = {}}, {.nodes = 1, .device = {}, .speed = 3}}};
  const auto program = lower(make_schedule("1f1b", 2, 16));
  CHECK(fastest_partition(program, costs, cluster).partition.boundaries ==
        std::vector<int>{0, 2, 8});
  std::swap(cluster.mixture->kinds[0], cluster.mixture->kinds[1]);
  CHECK(fastest_partition(program, costs, cluster).partition.boundaries ==
        std::vector<int>{0, 6, 8});
}

TEST_CASE("A boundary avoids the output that is slow to send", "[sim][partition]") {
  LayerCosts costs;
  costs.layers.resize(4);
  for (LayerCost& layer : costs.layers) {
    layer.forward = layer.input_gradient = layer.weight_gradient = {1};
    layer.output = {1};
  }
  costs.layers[1].output = {100};
  const auto program = lower(make_schedule("1f1b", 2, 4));
  const auto found = fastest_partition(program, costs, cluster_of(2, 10));
  CHECK(balanced_boundaries(profile_weights(costs), 2) == std::vector<int>{0, 2, 4});
  CHECK(found.partition.boundaries != std::vector<int>{0, 2, 4});
  CHECK(found.iteration < found.balanced);
}

TEST_CASE("The local search over many partitions is near the optimum", "[sim][partition]") {
  std::mt19937 random(4);
  int optimal = 0;
  double worst = 1;
  for (int round = 0; round < 4; ++round) {
    const auto costs = random_costs(29, random);
    const auto cluster = cluster_of(4, 10);
    const auto program = lower(make_schedule("1f1b", 4, 4));
    const auto found = fastest_partition(program, costs, cluster);
    CHECK_FALSE(found.exact);
    CHECK(found.iteration <= found.balanced);
    const double best = best_of_four(program, costs, cluster);
    worst = std::max(worst, found.iteration.value / best);
    optimal += found.iteration.value <= best * (1 + 1e-9) ? 1 : 0;
  }
  CHECK(worst < 1.05);
  fmt::print(
      "fastest partition of 29 layers, by descent: {} of 4 optimal, at worst {:.2f} % over\n",
      optimal, 100 * (worst - 1));
}

TEST_CASE("A local search that starts above the cap finds a partition that fits",
          "[sim][partition]") {
  // The first 12 of 29 layers have 100 bytes each, the others one, and all take equal times.
  const auto need_of = [](const std::vector<int>& boundaries) -> PartitionNeed {
    int longest = 0, peak = 0;
    for (std::size_t stage = 0; stage + 1 < boundaries.size(); ++stage) {
      const int first = boundaries[stage], end = boundaries[stage + 1];
      const int large = std::max(0, std::min(end, 12) - first);
      longest = std::max(longest, end - first);
      peak = std::max(peak, 99 * large + end - first);
    }
    return {{1.0 * longest}, {peak}};
  };
  const std::vector<int> start{0, 8, 15, 22, 29};
  CHECK(need_of(start).peak == Bytes{800});
  const auto found = fastest_partition(29, start, need_of, Bytes{650});
  CHECK_FALSE(found.exact);
  CHECK(need_of(found.partition.boundaries).peak <= Bytes{650});
}

TEST_CASE("No rank of the fastest partition is over the cap", "[sim][partition]") {
  LayerCosts costs;
  costs.layers.resize(4);
  for (LayerCost& layer : costs.layers) {
    layer.forward = layer.input_gradient = layer.weight_gradient = {1};
    layer.parameters = {10};
  }
  costs.layers[0].parameters = costs.layers[1].parameters = {50};
  const auto program = lower(make_schedule("1f1b", 2, 4));
  const auto cluster = cluster_of(2, 1e12);
  CHECK(fastest_partition(program, costs, cluster).partition.boundaries ==
        std::vector<int>{0, 2, 4});
  CHECK(fastest_partition(program, costs, cluster, Bytes{300}).partition.boundaries ==
        std::vector<int>{0, 1, 4});
  try {
    fastest_partition(program, costs, cluster, Bytes{100});
    FAIL("not refused");
  } catch (const Infeasible& answer) {
    CHECK(answer.what() == std::string("memory: none of 3 partitions fits: the lowest peak is "
                                       "280 bytes, but the cap is 100"));
  }
  CHECK_THROWS_AS(fastest_partition(lower(make_schedule("1f1b", 5, 4)), costs, cluster),
                  Infeasible);
}

}  // namespace fastest_partition_test
