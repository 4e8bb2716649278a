#include "pipewright/plan/timeline/clock_offsets.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "support/catch.hpp"

namespace clock_offsets_test {

using namespace pipewright::plan;

/// Messages between ranks at true times, measured with clocks that are ahead of true time.
class Readings {
 public:
  explicit Readings(std::vector<double> ahead) : ahead_(std::move(ahead)) {}

  void pass(int from, int to, double at, double delay) {
    passages_.push_back({from, to, reading(from, at), reading(to, at + delay)});
    double& fastest = fastest_.try_emplace({from, to}, delay).first->second;
    fastest = std::min(fastest, delay);
  }

  ClockOffsets solve() const { return clock_offsets(static_cast<int>(ahead_.size()), passages_); }
  const std::vector<ClockObservation>& passages() const { return passages_; }
  /// How far the clock of `rank` is ahead of rank 0's.
  double truth(int rank) const { return at(rank) - at(0); }
  double fastest_round_trip(int a, int b) const {
    return fastest_.at({a, b}) + fastest_.at({b, a});
  }

 private:
  double at(int rank) const { return ahead_[static_cast<std::size_t>(rank)]; }
  Seconds reading(int rank, double time) const { return {time + at(rank)}; }

  std::vector<double> ahead_;
  std::vector<ClockObservation> passages_;
  std::map<std::pair<int, int>, double> fastest_;
};

double value(const std::vector<Seconds>& offsets, int rank) {
  return offsets[static_cast<std::size_t>(rank)].value;
}

/// Returns by how much the worst passage arrives before it was sent, after the offsets are applied;
/// negative if none does.
double worst_violation(const std::vector<ClockObservation>& passages,
                       const std::vector<Seconds>& offsets) {
  double worst = -1e300;
  for (const auto& [from, to, sent, arrived] : passages)
    worst =
        std::max(worst, (sent.value - value(offsets, from)) - (arrived.value - value(offsets, to)));
  return worst;
}

/// Returns random offsets of seconds, and random delays of milliseconds between neighbors in both
/// directions.
Readings random_pipeline(int ranks, std::mt19937& random) {
  std::uniform_real_distribution<double> offset(-10, 10), delay(1e-3, 5e-3);
  std::vector<double> ahead(static_cast<std::size_t>(ranks));
  for (double& seconds : ahead)
    seconds = offset(random);
  Readings readings(ahead);
  for (int microbatch = 0; microbatch < 6; ++microbatch)
    for (int rank = 0; rank + 1 < ranks; ++rank) {
      readings.pass(rank, rank + 1, 0.1 * microbatch, delay(random));
      readings.pass(rank + 1, rank, 1 + 0.1 * microbatch, delay(random));
    }
  return readings;
}

TEST_CASE("Two clocks are set between the fastest passages of both directions", "[plan][clock]") {
  Readings readings({0, 4});
  readings.pass(0, 1, 0, 2);
  readings.pass(0, 1, 1, 1.5);  // the fastest in this direction: 1.5
  readings.pass(1, 0, 5, 0.5);  // and back: 0.5, so the midpoint is half a second off
  const ClockOffsets clocks = readings.solve();
  CHECK(clocks.offset == std::vector<Seconds>{{0}, {4.5}});
  CHECK(clocks.residual == Seconds{0});
  CHECK(clocks.uncertainty == Seconds{1});  // half of the round trip
  CHECK(clocks.unjoined.empty());
}

TEST_CASE("Offsets of neighbors are off by at most half of their fastest round trip",
          "[plan][clock]") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const int ranks = 2 + trial % 7;
    const Readings readings = random_pipeline(ranks, random);
    const ClockOffsets clocks = readings.solve();
    CHECK(clocks.residual == Seconds{0});
    CHECK(worst_violation(readings.passages(), clocks.offset) <= 1e-12);
    for (int rank = 0; rank + 1 < ranks; ++rank) {
      const double found = value(clocks.offset, rank + 1) - value(clocks.offset, rank);
      const double truth = readings.truth(rank + 1) - readings.truth(rank);
      CHECK(std::abs(found - truth) <= readings.fastest_round_trip(rank, rank + 1) / 2 + 1e-12);
      CHECK(std::abs(value(clocks.offset, rank + 1) - readings.truth(rank + 1)) <=
            clocks.uncertainty.value + 1e-12);
    }
  }
}

TEST_CASE("Offsets are exact if both directions are equally fast, also around a ring",
          "[plan][clock]") {
  Readings readings({1, -3, 100, 0.25, 17});
  for (int rank = 0; rank < 5; ++rank) {
    const double delay = 0.125 * (1 + rank);
    readings.pass(rank, (rank + 1) % 5, 0, delay);
    readings.pass((rank + 1) % 5, rank, 2, delay);
  }
  const ClockOffsets clocks = readings.solve();
  for (int rank = 0; rank < 5; ++rank)
    CHECK(value(clocks.offset, rank) == readings.truth(rank));
}

TEST_CASE("For inconsistent readings, the offsets violate causality as little as possible",
          "[plan][clock]") {
  // Around this ring a message would arrive 3 s before it was sent: at least 1 s per passage.
  const std::vector<ClockObservation> ring{{0, 1, {0}, {1}}, {1, 2, {0}, {-5}}, {2, 0, {0}, {1}}};
  const ClockOffsets clocks = clock_offsets(3, ring);
  CHECK(clocks.residual == Seconds{1});
  CHECK(clocks.offset == std::vector<Seconds>{{0}, {2}, {-2}});
  CHECK(worst_violation(ring, clocks.offset) == 1);
}

TEST_CASE("The residual is the largest remaining violation", "[plan][clock]") {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> time(-1, 1);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<ClockObservation> passages;
    for (int from = 0; from < 5; ++from)
      for (int to = 0; to < 5; ++to)
        if (from != to)
          passages.push_back({from, to, {time(random)}, {time(random)}});
    const ClockOffsets clocks = clock_offsets(5, passages);
    REQUIRE(clocks.residual.value > 0);
    CHECK(worst_violation(passages, clocks.offset) == Approx(clocks.residual.value).margin(1e-12));
  }
}

TEST_CASE("A fast indirect path gives tighter bounds than a slow direct one", "[plan][clock]") {
  Readings readings({0, 5, 8});
  for (const auto& [a, b, delay] : {std::tuple{0, 1, 1.0}, {1, 2, 1.0}}) {
    readings.pass(a, b, 0, delay);
    readings.pass(b, a, 10, delay);
  }
  readings.pass(0, 2, 0, 50);  // its midpoint with the opposite passage would be 24 s off
  readings.pass(2, 0, 10, 2);
  CHECK(readings.solve().offset == std::vector<Seconds>{{0}, {5}, {8}});
}

TEST_CASE("Ranks that read one clock have the offsets that it gives, and help to relate others",
          "[plan][clock]") {
  // Ranks of two machines; the clocks of ranks 4 and 5 are unknown.
  const std::vector<double> ahead{3, -2, 0.25, 7, 1, -4};
  const std::vector<ClockSource> clocks{{"a", {10 - ahead[0]}},
                                        {"b", {50 - ahead[1]}},
                                        {"a", {10 - ahead[2]}},
                                        {"b", {50 - ahead[3]}},
                                        {"", {5}},
                                        {"", {5}}};
  Readings readings(ahead);
  readings.pass(0, 1, 0, 0.5);
  readings.pass(3, 2, 0, 0.5);
  readings.pass(3, 4, 0, 0.5);
  readings.pass(4, 5, 0, 0.5);
  readings.pass(5, 4, 0, 0.5);
  readings.pass(4, 3, 0, 0.5);
  auto passages = readings.passages();
  const auto by_machines = passages_of(clocks);
  CHECK(by_machines.size() == 4);
  passages.insert(passages.end(), by_machines.begin(), by_machines.end());
  const ClockOffsets found = clock_offsets(6, passages);
  CHECK(found.residual == Seconds{0});
  CHECK(found.unjoined.empty());
  for (int rank = 1; rank < 6; ++rank)
    CHECK(value(found.offset, rank) == Approx(readings.truth(rank)).margin(1e-12));
  // There are no messages between the machines, so each keeps its own clock.
  CHECK(clock_offsets(4, by_machines).unjoined == std::vector<int>{1, 3});
  CHECK(value(clock_offsets(4, by_machines).offset, 2) == readings.truth(2));
}

TEST_CASE("If passages go in one direction only, the fastest is assumed to take no time",
          "[plan][clock]") {
  // Rank 3 only sends to rank 2, so its clock is bounded in one direction only.
  Readings readings({0, 7, -2, 30});
  readings.pass(0, 1, 0, 1);
  readings.pass(0, 1, 5, 0.5);
  readings.pass(1, 2, 5, 2);
  readings.pass(3, 2, 5, 4);
  const ClockOffsets clocks = readings.solve();
  CHECK(clocks.offset == std::vector<Seconds>{{0}, {7.5}, {0.5}, {28.5}});
  CHECK(std::isinf(clocks.uncertainty.value));
  CHECK(clocks.residual == Seconds{0});
  CHECK(worst_violation(readings.passages(), clocks.offset) == 0);
}

TEST_CASE("Ranks not connected with rank 0 keep their own clock and are named", "[plan][clock]") {
  Readings readings({0, 5, 3, 10, 20});
  readings.pass(0, 1, 0, 1);
  readings.pass(1, 0, 2, 1);
  readings.pass(3, 4, 0, 1);
  readings.pass(4, 3, 2, 1);
  const ClockOffsets clocks = readings.solve();
  CHECK(clocks.offset == std::vector<Seconds>{{0}, {5}, {0}, {0}, {10}});
  CHECK(clocks.unjoined == std::vector<int>{2, 3, 4});

  const ClockOffsets silent = clock_offsets(2, {});
  CHECK(silent.offset == std::vector<Seconds>{{0}, {0}});
  CHECK(silent.residual == Seconds{0});
  CHECK(silent.uncertainty == Seconds{0});
  CHECK(silent.unjoined == std::vector<int>{1});
}

}  // namespace clock_offsets_test
