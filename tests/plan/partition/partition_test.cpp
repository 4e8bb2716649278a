#include "pipewright/plan/partition/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <tuple>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/partitioners/balanced.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reference.hpp"

namespace partition_test {

using namespace pipewright::plan;
using pipewright::test::error_of;
using pipewright::test::reference_cases;
using pipewright::test::report_equal;

const std::vector<double> alexnet_parameters{23296,    0, 0,      307392,   0, 0,    663936, 0,
                                             884992,   0, 590080, 0,        0, 0,    0,      0,
                                             37752832, 0, 0,      16781312, 0, 40970};

std::vector<double> sums_of(const std::vector<double>& weights,
                            const std::vector<int>& boundaries) {
  std::vector<double> sums;
  for (std::size_t part = 1; part < boundaries.size(); ++part)
    sums.push_back(std::accumulate(weights.begin() + boundaries[part - 1],
                                   weights.begin() + boundaries[part], 0.0));
  return sums;
}

double bottleneck_of(const std::vector<double>& sums) {
  return *std::max_element(sums.begin(), sums.end());
}

double squares_of(const std::vector<double>& weights, const std::vector<int>& boundaries) {
  const auto sums = sums_of(weights, boundaries);
  return std::inner_product(sums.begin(), sums.end(), sums.begin(), 0.0);
}

/// Ranks boundaries, smaller is better: heaviest part, sum of squares, then later boundaries, the
/// last one first.
auto rank_of(const std::vector<double>& weights, const std::vector<int>& boundaries) {
  std::vector<int> earliness;
  for (auto at = boundaries.rbegin(); at != boundaries.rend(); ++at)
    earliness.push_back(-*at);
  return std::tuple(bottleneck_of(sums_of(weights, boundaries)), squares_of(weights, boundaries),
                    earliness);
}

/// Tries all partitions.
std::vector<int> best_by_trying(const std::vector<double>& weights, int parts) {
  const auto items = static_cast<int>(weights.size());
  std::vector<int> best;
  std::vector<bool> cut(weights.size() - 1, false);
  std::fill(cut.end() - (parts - 1), cut.end(), true);
  do {
    std::vector<int> boundaries{0};
    for (int i = 1; i < items; ++i)
      if (cut[static_cast<std::size_t>(i) - 1])
        boundaries.push_back(i);
    boundaries.push_back(items);
    if (best.empty() || rank_of(weights, boundaries) < rank_of(weights, best))
      best = boundaries;
  } while (std::next_permutation(cut.begin(), cut.end()));
  return best;
}

std::string error_in(const std::string& fields) {
  const std::string text = "{\"format\": \"pipewright/partition/1\",\n" + fields + "}";
  return error_of([&] { partition_from_json(JsonDocument::parse(text, "p.json")); });
}

TEST_CASE("AlexNet's parameters in two parts are split before layer 19", "[plan][partition]") {
  CHECK(balanced_boundaries(alexnet_parameters, 2) == std::vector<int>{0, 19, 22});
}

TEST_CASE("The heaviest part is as light as possible", "[plan][partition]") {
  CHECK(balanced_boundaries({3, 1, 2}, 2) == std::vector<int>{0, 1, 3});
  CHECK(balanced_boundaries({1, 1, 1, 9}, 2) == std::vector<int>{0, 3, 4});
  CHECK(balanced_boundaries({5}, 1) == std::vector<int>{0, 1});
}

TEST_CASE("With the same bottleneck, the other parts are even", "[plan][partition]") {
  CHECK(balanced_boundaries({9, 1, 1, 1, 1}, 3) == std::vector<int>{0, 1, 3, 5});
}

TEST_CASE("Ties go to the later boundary", "[plan][partition]") {
  CHECK(balanced_boundaries({2, 0, 0, 2}, 2) == std::vector<int>{0, 3, 4});
  CHECK(balanced_boundaries({0, 0, 0, 0}, 3) == std::vector<int>{0, 2, 3, 4});
}

TEST_CASE("Rounding in sums of fractions does not affect boundaries", "[plan][partition]") {
  CHECK(balanced_boundaries(std::vector<double>(9, 0.1), 3) == std::vector<int>{0, 3, 6, 9});
  CHECK(balanced_boundaries(std::vector<double>(7, 0.1), 2) == std::vector<int>{0, 4, 7});
  CHECK(balanced_boundaries({1e-300, 1e-300, 2e-300}, 2) == std::vector<int>{0, 2, 3});
  CHECK(balanced_boundaries({1e300, 1e300, 2e300}, 2) == std::vector<int>{0, 2, 3});
}

TEST_CASE("Balanced boundaries equal the best of all partitions", "[plan][partition]") {
  std::mt19937 random(7);
  for (int round = 0; round < 4000; ++round) {
    const int items = std::uniform_int_distribution(1, 9)(random);
    const int parts = std::uniform_int_distribution(1, items)(random);
    const int heaviest = std::uniform_int_distribution(0, 12)(random);
    std::vector<double> weights;
    for (int i = 0; i < items; ++i)
      weights.push_back(std::uniform_int_distribution(0, heaviest)(random));
    CAPTURE(weights, parts);
    REQUIRE(balanced_boundaries(weights, parts) == best_by_trying(weights, parts));
  }
}

TEST_CASE("Balanced boundaries of fractions equal the best of all partitions",
          "[plan][partition]") {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    const int items = std::uniform_int_distribution(1, 10)(random);
    const int parts = std::uniform_int_distribution(1, items)(random);
    const double scale = std::pow(10.0, std::uniform_int_distribution(-200, 150)(random));
    std::vector<double> weights;
    for (int i = 0; i < items; ++i)
      weights.push_back(round % 3 == 0 ? 0.1 * std::uniform_int_distribution(0, 4)(random)
                                       : scale * std::exponential_distribution(1.0)(random));
    CAPTURE(weights, parts);
    const auto boundaries = balanced_boundaries(weights, parts);
    const auto best = best_by_trying(weights, parts);
    REQUIRE(boundaries.size() == best.size());
    REQUIRE(std::adjacent_find(boundaries.begin(), boundaries.end(), std::greater_equal()) ==
            boundaries.end());
    REQUIRE(bottleneck_of(sums_of(weights, boundaries)) <=
            bottleneck_of(sums_of(weights, best)) * (1 + 1e-11));
    REQUIRE(squares_of(weights, boundaries) <= squares_of(weights, best) * (1 + 1e-11));
  }
}

TEST_CASE("Parameter counts in the billions are weighed exactly", "[plan][partition]") {
  CHECK(balanced_boundaries({4e12, 1, 4e12, 4e12}, 3) == std::vector<int>{0, 2, 3, 4});
  CHECK(balanced_boundaries({4e12 + 1, 4e12, 1}, 2) == std::vector<int>{0, 1, 3});
  // Both have the bottleneck 1e13; the squares differ by 2 in 1e26.
  CHECK(balanced_boundaries({1e13, 2, 1, 2}, 3) == std::vector<int>{0, 1, 3, 4});
}

TEST_CASE("One heavy item leaves the others to be even", "[plan][partition]") {
  std::vector<double> weights(1000, 1.0);
  weights.front() = 5000;
  const auto boundaries = balanced_boundaries(weights, 112);
  for (std::size_t part = 2; part < boundaries.size(); ++part)
    CHECK(boundaries[part] - boundaries[part - 1] == 9);
}

TEST_CASE("Balanced parts equal DeepSpeed's where those are optimal",
          "[plan][partition][reference]") {
  int cases = 0, equal = 0, more_even = 0, lighter = 0;
  for (const Json& peer : reference_cases("partition/partition_balanced.json")) {
    const auto weights = peer["weights"].get<std::vector<double>>();
    const auto theirs = peer["parts"].get<std::vector<int>>();
    const auto ours = balanced_boundaries(weights, peer["num_parts"]);
    CAPTURE(peer["name"].dump(), theirs, ours);
    ++cases;
    if (ours == theirs)
      ++equal;
    else if (bottleneck_of(sums_of(weights, ours)) < bottleneck_of(sums_of(weights, theirs)))
      ++lighter;
    else if (bottleneck_of(sums_of(weights, ours)) == bottleneck_of(sums_of(weights, theirs)) &&
             squares_of(weights, ours) < squares_of(weights, theirs))
      ++more_even;
    else
      FAIL_CHECK("neither equal nor better");
  }
  CHECK(equal > cases / 2);
  fmt::print(
      "compared: partition_balanced.json: {} cases: {} equal borders, {} as heavy and more even, "
      "{} "
      "with a lighter bottleneck\n",
      cases, equal, more_even, lighter);
}

TEST_CASE("Uniform parts equal DeepSpeed's", "[plan][partition][reference]") {
  std::size_t equal = 0;
  const Json cases = reference_cases("partition/partition_uniform.json");
  for (const Json& peer : cases) {
    const int items = peer["num_items"];
    const int parts = peer["num_parts"];
    CAPTURE(items, parts);
    const bool same = Json(uniform_boundaries(items, parts)) == peer["parts"];
    CHECK(same);
    equal += same;
  }
  report_equal("partition_uniform.json", equal, cases.size());
}

TEST_CASE("The longer uniform parts come first", "[plan][partition]") {
  CHECK(uniform_boundaries(8, 4) == std::vector<int>{0, 2, 4, 6, 8});
  CHECK(uniform_boundaries(22, 4) == std::vector<int>{0, 6, 12, 17, 22});
}

TEST_CASE("With fewer items than parts the last parts are empty", "[plan][partition]") {
  CHECK(uniform_boundaries(1, 4) == std::vector<int>{0, 1, 1, 1, 1});
  CHECK(balanced_boundaries({1, 2}, 3) == std::vector<int>{0, 1, 2, 2});
  CHECK(balanced_boundaries({}, 2) == std::vector<int>{0, 0, 0});
}

TEST_CASE("An impossible partition is rejected with an error message", "[plan][partition]") {
  CHECK(error_of([] { balanced_boundaries({1, 2}, 0); }) == "0 parts asked for, the least is 1");
  CHECK(error_of([] {
          balanced_boundaries({1, -2}, 1);
        }) == "the weight of item 1 is -2, it must be finite and at least 0");
  CHECK(error_of([] {
          balanced_boundaries({1e308, 1e308}, 2);
        }) == "the weights together are more than a number can hold");
  CHECK(error_of([] { uniform_boundaries(2, 0); }) == "0 parts asked for, the least is 1");
  CHECK(error_of([] { uniform_boundaries(-1, 1); }) == "-1 items to partition, the least is 0");
}

TEST_CASE("A partition counts stages and layers", "[plan][partition]") {
  const Partition partition = Partition{{0, 2, 3}};
  CHECK(stage_count(partition) == 2);
  CHECK(layer_count(partition) == 3);
  CHECK(to_string(partition.boundaries) == "[0, 2, 3]");
}

TEST_CASE("A partition reads back as it was written", "[plan][partition]") {
  const PlacedPartition placed{.partition = {{0, 2, 3, 7}}, .rank_of_stage = {0, 1, 0}};
  const auto text = to_json(placed).dump();
  CHECK(partition_from_json(JsonDocument::parse(text, "p.json")) == placed);
}

TEST_CASE("A partition file's error is reported with its position", "[plan][partition]") {
  CHECK(error_in(R"("boundaries": [0, 3, 3, 2], "rank_of_stage": [0, 1, 2])") ==
        "p.json:2:1: /boundaries: stage 1 from 3 to 3 has no layer: boundaries must increase\n"
        "p.json:2:1: /boundaries: stage 2 from 3 to 2 has no layer: boundaries must increase");
  CHECK(error_in(R"("boundaries": [1, 3], "rank_of_stage": [0])") ==
        "p.json:2:1: /boundaries: the first boundary must be 0, not 1");
  CHECK(error_in(R"("boundaries": [0], "rank_of_stage": [])") ==
        "p.json:2:1: /boundaries: at least two boundaries are needed: 0 and the last layer's end");
  CHECK(error_in(R"("boundaries": [0, 3, 4], "rank_of_stage": [0])") ==
        "p.json:2:26: /rank_of_stage: 1 ranks are listed, but there are 2 stages");
  CHECK(error_in(R"("boundaries": [0, 3, 4], "rank_of_stage": [0, 2])") ==
        "p.json:2:26: /rank_of_stage: rank 1 has no stage, but rank 2 has one");
}

}  // namespace partition_test
