// Confidence intervals of other steps: closed forms, and their coverage of steps that were
// generated like those of the record.

#include "pipewright/sim/draws/draw_ranges.hpp"

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "sim/support/equal_ranks.hpp"
#include "sim/support/recorded.hpp"

namespace draw_ranges_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

/// Returns the ranges of steps that consist of one forward with the recorded duration.
SampledRanges ranges_from(const std::vector<double>& steps, std::uint64_t seed = 0) {
  static const Structure structure(lower(make("1f1b", 1, 1)));
  StepCosts costs;
  costs.stages.resize(1);
  costs.stages.front().forward = {std::accumulate(steps.begin(), steps.end(), 0.0) /
                                  static_cast<double>(steps.size())};
  const Jitter jitter(record_of({recorded(0, 0, "0F0", steps)}));
  return draw_ranges(structure, costs, jitter, {.seed = seed});
}

TEST_CASE("The interval for equal steps is one number", "[sim][draws]") {
  const SampledRanges ranges = ranges_from(std::vector<double>(100, 3));
  CHECK(ranges.steps == 100);
  CHECK(ranges.records == 100);
  for (const SampledRange& range : {ranges.mean, ranges.p50, ranges.p95}) {
    CHECK(range.low_s == Approx(3));
    CHECK(range.high_s == Approx(3));
  }
  CHECK(std::isinf(ranges.p99.high_s));
}

TEST_CASE("A short record has no upper end, but the probability that it lacks the longest step",
          "[sim][draws]") {
  std::vector<double> rising;
  const auto upper_end = [&](int steps) {
    rising.resize(static_cast<std::size_t>(steps));
    std::iota(rising.begin(), rising.end(), 1.0);
    return std::isfinite(ranges_from(rising).p95.high_s);
  };
  // The longest two of 32 others are beyond all recorded in 32 · 31 of 64 · 63 cases.
  CHECK_FALSE(upper_end(32));
  CHECK_FALSE(upper_end(79));  // of four: 1 in 18
  CHECK(upper_end(80));        // of five: 1 in 35
  CHECK(ranges_from({1, 2, 3, 4}).unseen == Approx(0.81450625));
  const auto json = to_json(ranges_from({1, 2, 3, 4}));
  CHECK(json.at("p95_s").at(1).is_null());
  CHECK(json.at("mean_s").at(0) <= json.at("mean_s").at(1));
}

TEST_CASE("Resampled records follow the recorded one block by block", "[sim][draws]") {
  const DrawnSteps in_blocks{.recorded = 27, .together = {1, 1}, .block = block_of(27)};
  REQUIRE(in_blocks.block == 3);
  int follow = 0, all = 0;
  for (std::uint64_t number = 0; number < 27 * 200; ++number) {
    int own = 0, next = 0;
    in_blocks.draw(5, number, &own);
    in_blocks.draw(5, number + 1, &next);
    REQUIRE((own >= 0 && own < 27));
    if (number % 3 != 2) {
      ++all;
      follow += next == (own + 1) % 27 ? 1 : 0;
    }
  }
  // Both steps are in one block of the intermediate record with probability two of three; otherwise
  // they follow each other by chance.
  CHECK(static_cast<double>(follow) / all == Approx(2.0 / 3 + 1.0 / 3 / 27).margin(0.03));
}

TEST_CASE("From two steps the mean of resampled ones may be either", "[sim][draws]") {
  const SampledRanges two = ranges_from({1, 3});
  CHECK(two.mean.low_s == Approx(1));
  CHECK(two.mean.high_s == Approx(3));
}

struct Held {
  double mean = 0, p50 = 0, p95 = 0;  // parts of the cases
};

/// Returns the coverage of `cases` records, each compared with as many other steps.
Held held_by(const std::function<std::vector<double>()>& steps, int cases) {
  Held held;
  for (int at = 0; at < cases; ++at) {
    const SampledRanges ranges = ranges_from(steps(), static_cast<std::uint64_t>(at));
    const Draws others(steps());
    held.mean += ranges.mean.has(others.mean()) ? 1.0 / cases : 0;
    held.p50 += ranges.p50.has(others.percentile(0.50)) ? 1.0 / cases : 0;
    held.p95 += ranges.p95.has(others.percentile(0.95)) ? 1.0 / cases : 0;
  }
  return held;
}

TEST_CASE("Nine of ten figures of other steps are in their interval", "[sim][draws]") {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  const auto alone = [&] { return 10 + normal(random); };
  const auto record = [](int steps, const std::function<double()>& next) {
    std::vector<double> all;
    for (int step = 0; step < steps; ++step)
      all.push_back(next());
    return all;
  };
  const auto told = [](const char* what, const Held& held) {
    fmt::print("held in its range, {}: mean {:.2f}, P50 {:.2f}, P95 {:.2f}\n", what, held.mean,
               held.p50, held.p95);
    return held;
  };
  const Held own = told("steps on their own", held_by([&] { return record(100, alone); }, 120));
  CHECK(own.mean == Approx(0.9).margin(0.08));
  CHECK(own.p50 == Approx(0.9).margin(0.08));
  CHECK(own.p95 == Approx(0.9).margin(0.08));
  const Held few = told("few steps", held_by([&] { return record(16, alone); }, 200));
  CHECK(few.mean >= 0.75);
  CHECK(few.p50 >= 0.75);
  CHECK(few.p95 >= 0.9);  // has no upper bound
  // A step has a correlation of 0.6 with the one before.
  double before = 0;
  const auto after = [&] { return 10 + (before = 0.6 * before + 0.8 * normal(random)); };
  const Held slow =
      told("steps like those before", held_by([&] { return record(100, after); }, 120));
  CHECK(slow.mean >= 0.7);
  CHECK(slow.p50 >= 0.75);
  CHECK(slow.p95 >= 0.7);
}

}  // namespace draw_ranges_test
