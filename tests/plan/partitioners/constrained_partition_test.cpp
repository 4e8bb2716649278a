#include "pipewright/plan/partitioners/constrained_partition.hpp"

#include <functional>
#include <numeric>
#include <random>
#include <tuple>

#include "pipewright/plan/partitioners/balanced.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace constrained_partition_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

PartitionRequest request_of(std::vector<double> weights, int stages) {
  PartitionRequest request;
  request.weights = std::move(weights);
  request.stages = stages;
  return request;
}

/// Sets the memory of each layer, independent of its stage, and the limit.
void cap(PartitionRequest& request, std::vector<std::int64_t> bytes, std::int64_t limit) {
  request.memory_cap = Bytes{limit};
  request.memory = [bytes](int, LayerRange range) {
    return Bytes{
        std::accumulate(bytes.begin() + range.begin, bytes.begin() + range.end, std::int64_t{0})};
  };
}

std::string refusal(const PartitionRequest& request) {
  try {
    constrained_boundaries(request);
  } catch (const Infeasible& answer) {
    return answer.what();
  }
  return "feasible";
}

bool meets(const PartitionRequest& request, const std::vector<int>& boundaries) {
  const int ranks = request.ranks > 0 ? request.ranks : request.stages;
  std::vector<Bytes> held(static_cast<std::size_t>(ranks));
  for (int stage = 0; stage < request.stages; ++stage) {
    const LayerRange range{boundaries[static_cast<std::size_t>(stage)],
                           boundaries[static_cast<std::size_t>(stage) + 1]};
    if (request.memory_cap)
      held[static_cast<std::size_t>(stage % ranks)] += request.memory(stage, range);
    if (stage == 0 && request.first && range.end != *request.first)
      return false;
    if (stage + 1 == request.stages && request.last && range.end - range.begin != *request.last)
      return false;
  }
  const auto is_border = [&](int layer) {
    return std::find(boundaries.begin(), boundaries.end(), layer) != boundaries.end();
  };
  for (const LayerRange& range : request.together)
    for (int inside = range.begin + 1; inside < range.end; ++inside)
      if (is_border(inside))
        return false;
  return std::all_of(request.borders.begin(), request.borders.end(), is_border) &&
         std::all_of(held.begin(), held.end(), [&](Bytes bytes) {
           return !request.memory_cap || bytes <= *request.memory_cap;
         });
}

/// Ranks boundaries, smaller is better, as for balanced_boundaries.
auto rank_of(const std::vector<double>& weights, const std::vector<int>& boundaries) {
  double heaviest = 0, squares = 0;
  for (std::size_t stage = 1; stage < boundaries.size(); ++stage) {
    const double sum = std::accumulate(weights.begin() + boundaries[stage - 1],
                                       weights.begin() + boundaries[stage], 0.0);
    heaviest = std::max(heaviest, sum);
    squares += sum * sum;
  }
  std::vector<int> earliness(boundaries.rbegin(), boundaries.rend());
  for (int& border : earliness)
    border = -border;
  return std::tuple(heaviest, squares, earliness);
}

/// Tries all partitions. Empty if none meets the constraints.
std::vector<int> best_by_trying(const PartitionRequest& request) {
  const auto layers = static_cast<int>(request.weights.size());
  std::vector<int> best;
  std::vector<int> boundaries{0};
  const std::function<void()> extend = [&] {
    if (static_cast<int>(boundaries.size()) == request.stages) {
      boundaries.push_back(layers);
      if (meets(request, boundaries) &&
          (best.empty() || rank_of(request.weights, boundaries) < rank_of(request.weights, best)))
        best = boundaries;
      boundaries.pop_back();
      return;
    }
    for (int border = boundaries.back() + 1; border < layers; ++border) {
      boundaries.push_back(border);
      extend();
      boundaries.pop_back();
    }
  };
  extend();
  return best;
}

TEST_CASE("Without constraints, the boundaries are the balanced ones", "[plan][partition]") {
  const std::vector<double> weights{5, 1, 4, 2, 2, 7, 0, 3, 1, 6};
  for (int stages = 1; stages <= 10; ++stages)
    CHECK(constrained_boundaries(request_of(weights, stages)) ==
          balanced_boundaries(weights, stages));
}

TEST_CASE("The first and the last stage may be shorter than the others", "[plan][partition]") {
  auto request = request_of(std::vector<double>(12, 1.0), 4);
  request.first = 2;
  request.last = 1;
  CHECK(constrained_boundaries(request) == std::vector<int>{0, 2, 7, 11, 12});
}

TEST_CASE("Tied layers share a stage, whatever is between them", "[plan][partition]") {
  Model model;
  model.layers.resize(6);
  model.layers[3].tied_key = model.layers[5].tied_key = "table";
  model.layers[0].tied_key = "alone";
  REQUIRE(tied_ranges(model) == std::vector<LayerRange>{{3, 6}});
  auto request = request_of({1, 1, 1, 1, 1, 1}, 3);
  request.together = tied_ranges(model);
  CHECK(constrained_boundaries(request) == std::vector<int>{0, 2, 3, 6});
}

TEST_CASE("A stage's memory may depend on its position", "[plan][partition]") {
  auto request = request_of({1, 1, 1, 1}, 2);
  request.memory_cap = Bytes{4};
  request.memory = [](int stage, LayerRange range) {
    return Bytes{(2 - stage) * 2 * std::int64_t{range.end - range.begin}};
  };
  CHECK(refusal(request) ==
        "memory: layers 1 to 3 together need 6 B, and no other cut needs less; the cap is 4 B");
  request.memory_cap = Bytes{6};
  CHECK(constrained_boundaries(request) == std::vector<int>{0, 1, 4});
}

TEST_CASE("Constrained boundaries equal the best of all partitions", "[plan][partition]") {
  std::mt19937 random(5);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  int feasible = 0;
  for (int round = 0; round < 3000; ++round) {
    const int layers = draw(2, 10);
    const int ranks = draw(1, 3);
    const int stages = std::min(ranks * draw(1, 3), layers) / ranks * ranks;
    if (stages == 0)
      continue;
    auto request = request_of({}, stages);
    std::vector<std::int64_t> bytes;
    for (int layer = 0; layer < layers; ++layer) {
      request.weights.push_back(draw(0, 9));
      bytes.push_back(draw(0, 9));
    }
    request.ranks = ranks;
    if (draw(0, 2) == 0)
      request.first = draw(1, 3);
    if (draw(0, 2) == 0)
      request.last = draw(1, 3);
    if (draw(0, 2) == 0)
      request.borders = {draw(1, layers - 1)};
    if (const int begin = draw(0, layers - 1); draw(0, 2) == 0)
      request.together = {{begin, draw(begin + 1, layers)}};
    if (draw(0, 1) == 0)
      cap(request, bytes, draw(5, 40));
    const auto best = best_by_trying(request);
    CAPTURE(round, request.weights, stages, ranks);
    if (best.empty()) {
      REQUIRE(refusal(request) != "feasible");
    } else {
      ++feasible;
      REQUIRE(constrained_boundaries(request) == best);
    }
  }
  CHECK(feasible > 1000);
}

TEST_CASE("An impossible request is rejected with the tightest constraint", "[plan][partition]") {
  auto request = request_of({1, 1, 1, 1, 1}, 3);
  const auto plain = request;

  cap(request, {1, 1, 9, 1, 1}, 5);
  CHECK(refusal(request) == "memory: layer 2 alone needs 9 B, the cap is 5 B");
  request.ranks = 1;
  cap(request, {1, 1, 1, 1, 1}, 3);
  CHECK(refusal(request) ==
        "memory: each stage can be kept within 3 B, but no cut keeps the 3 stages of every rank "
        "within it");

  request = plain;
  request.stages = 6;
  CHECK(refusal(request) == "6 stages need a layer each, but there are 5");

  request = plain;
  request.first = 4;
  CHECK(refusal(request) == "4 layers in the first stage leave 1 of 5 for 2 others");

  request = plain;
  request.together = {{1, 4}};
  request.borders = {2};
  CHECK(refusal(request) == "the border at layer 2 separates layers that must share a stage");
  request.borders = {};
  request.together = {{0, 2}, {2, 5}};
  CHECK(refusal(request) == "layers that share a stage leave 2 pieces for 3 stages");

  request = plain;
  request.borders = {1, 2, 3};
  CHECK(refusal(request) ==
        "3 stages are not possible with the border at layer 1; without that they would be");

  request.borders = {5};
  CHECK(error_of([&] { constrained_boundaries(request); }) ==
        "a border at layer 5 is outside 1 to 4");

  request.ranks = 2;
  CHECK(error_of([&] { constrained_boundaries(request); }) ==
        "3 stages do not lie evenly on 2 ranks: possible are 2 or 4");
}

}  // namespace constrained_partition_test
