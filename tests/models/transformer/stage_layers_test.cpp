#include "pipewright/models/transformer/stage_layers.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "support/catch.hpp"

namespace stage_layers_test {

using pipewright::models::balanced_stage_layers;

double longest(const std::vector<int>& layers, double embedding, double head) {
  double most = 0;
  for (std::size_t stage = 0; stage < layers.size(); ++stage)
    most = std::max(most, layers[stage] + (stage == 0 ? embedding : 0) +
                              (stage + 1 == layers.size() ? head : 0));
  return most;
}

/// Returns the shortest longest stage over all distributions of `layers`.
double shortest_longest(int layers, int stages, double embedding, double head) {
  double best = 1e9;
  std::vector<int> counts;
  const std::function<void(int)> deal = [&](int left) {
    const int to_come = stages - static_cast<int>(counts.size()) - 1;
    if (to_come == 0) {
      counts.push_back(left);
      best = std::min(best, longest(counts, embedding, head));
      counts.pop_back();
      return;
    }
    for (int own = 1; own <= left - to_come; ++own) {
      counts.push_back(own);
      deal(left - own);
      counts.pop_back();
    }
  };
  deal(layers);
  return best;
}

TEST_CASE("No other distribution of layers has a shorter longest stage", "[plan][transformer]") {
  for (int stages = 1; stages <= 5; ++stages)
    for (int layers = stages; layers <= 14; ++layers)
      for (const double embedding : {0.0, 0.3, 1.0, 2.5})
        for (const double head : {0.0, 0.4, 1.0, 1.7, 6.0}) {
          const auto counts = balanced_stage_layers(layers, stages, embedding, head);
          CAPTURE(stages, layers, embedding, head);
          CHECK(std::accumulate(counts.begin(), counts.end(), 0) == layers);
          CHECK(*std::min_element(counts.begin(), counts.end()) >= 1);
          CHECK(longest(counts, embedding, head) ==
                Approx(shortest_longest(layers, stages, embedding, head)));
        }
}

TEST_CASE("126 layers are placed on 16 stages, with an embedding and a head of one layer each",
          "[plan][transformer]") {
  // The layout with which Llama 3 405B was trained (arXiv 2407.21783, section 3.3.2).
  std::vector<int> expected(16, 8);
  expected.front() = expected.back() = 7;
  CHECK(balanced_stage_layers(126, 16, 1, 1) == expected);
}

TEST_CASE("An extra layer is on a late stage, which holds fewer microbatches",
          "[plan][transformer]") {
  CHECK(balanced_stage_layers(9, 4, 0, 0) == std::vector{2, 2, 2, 3});
  CHECK(balanced_stage_layers(9, 4, 0, 0.5) == std::vector{2, 2, 3, 2});
}

}  // namespace stage_layers_test
