// Measures how long a balanced partition takes, for easy and hard distributions of weights.

#include "pipewright/plan/partition/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "pipewright/plan/partitioners/balanced.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int layers = 10'000;
constexpr int stages = 512;
constexpr int rounds = 9;

double median_ms(const std::vector<double>& weights) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    const auto boundaries = pipewright::plan::balanced_boundaries(weights, stages);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    if (boundaries.back() != layers)
      return -1;
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2];
}

void show(const char* name, const std::function<double(std::mt19937&, int layer)>& weight) {
  std::mt19937 random(1);
  std::vector<double> weights;
  for (int layer = 0; layer < layers; ++layer)
    weights.push_back(weight(random, layer));
  fmt::print("{:<28} {:6.2f} ms\n", name, median_ms(weights));
}

}  // namespace

int main() {
  fmt::print("{} layers into {} stages, median of {}\n", layers, stages, rounds);
  show("equal", [](std::mt19937&, int) { return 1.0; });
  show("fractions",
       [](std::mt19937& random, int) { return std::uniform_real_distribution(0.0, 1.0)(random); });
  show("log-normal", [](std::mt19937& random, int) {
    return std::exp(std::normal_distribution(0.0, 3.0)(random));
  });
  show("whole, up to 1e9", [](std::mt19937& random, int) {
    return static_cast<double>(std::uniform_int_distribution(0, 1'000'000'000)(random));
  });
  show("whole, one heavy layer", [](std::mt19937& random, int layer) {
    return layer == layers / 2 ? 1e6
                               : static_cast<double>(std::uniform_int_distribution(1, 99)(random));
  });
  return 0;
}
