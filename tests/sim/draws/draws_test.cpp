#include "pipewright/sim/draws/draws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipewright/sim/draws/lane_simulator.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/network/shared_links.hpp"
#include "sim/support/equal_ranks.hpp"
#include "sim/support/recorded.hpp"
#include "sim/support/structures.hpp"
#include "support/error_of.hpp"

namespace draws_test {

using namespace pipewright::models;
using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

/// Returns stages of a second for each pass; transfers and collectives take no time.
StepCosts seconds_each(const Program& program, int replicas = 1) {
  StepCosts costs;
  costs.stages.resize(static_cast<std::size_t>(stage_count(program)));
  for (StageCost& stage : costs.stages)
    stage.forward = stage.input_gradient = {1};
  costs.replicas = replicas;
  costs.cluster.devices_per_node = static_cast<int>(program.ranks.size()) * replicas;
  return costs;
}

/// Returns the fraction of the samples that take longer.
double part_above(const Draws& draws, double seconds) {
  const auto& all = draws.sorted();
  return static_cast<double>(std::upper_bound(all.begin(), all.end(), seconds) - all.begin()) /
             -static_cast<double>(all.size()) +
         1;
}

/// Returns five standard deviations of such a fraction among `draws` samples.
double margin(double part, int draws) { return 5 * std::sqrt(part * (1 - part) / draws); }

TEST_CASE("With equal steps every sample is the iteration time", "[sim][draws]") {
  const Structure structure(lower(make("1f1b", 2, 4)));
  const StepCosts costs = seconds_each(structure.program());
  const Jitter jitter(record_of({recorded(0, 0, "0F0", {4, 4}), recorded(0, 1, "1B0", {7, 7})}));
  const Draws draws = draw_iterations(structure, costs, jitter, {.count = 1000});
  CHECK(draws.sorted().size() == 1000);
  CHECK(draws.mean() == 10);
  for (const double fraction : {0.0, 0.5, 0.95, 0.99, 1.0})
    CHECK(draws.percentile(fraction) == 10);
}

TEST_CASE("A percentile is the shortest sample that the given percentage does not exceed",
          "[sim][draws]") {
  std::vector<double> hundred;
  for (int i = 100; i > 0; --i)
    hundred.push_back(i);
  const Draws draws(hundred);
  CHECK(draws.percentile(0.5) == 50);
  CHECK(draws.percentile(0.95) == 95);
  CHECK(draws.percentile(0.951) == 96);
  CHECK(draws.percentile(0.99) == 99);
  CHECK(draws.percentile(1) == 100);
  CHECK(draws.mean() == 50.5);
}

/// In one of four steps a forward takes four times as long as in the others.
std::vector<double> one_long() { return {4, 4, 4, 16}; }

TEST_CASE("A stage that is slow in a quarter of its steps, and pipelines that wait for each other",
          "[sim][draws]") {
  constexpr int count = 20'000;
  const Structure structure(lower(make("1f1b", 1, 1), {.replicas = 3}));
  // Factors 4/7 and 16/7 of 7 s, and a backward of 1 s.
  const auto draws_of = [&](const RecordedSteps& record) {
    StepCosts costs = seconds_each(structure.program(), 3);
    costs.stages[0].forward = {7};
    return draw_iterations(structure, costs, Jitter(record), {.count = count, .seed = 3});
  };
  const auto check = [&](const Draws& draws, double part_long) {
    CHECK(draws.sorted().front() == 5);
    CHECK(draws.sorted().back() == 17);
    CHECK(draws.percentile(1 - part_long - 0.05) == 5);
    CHECK(draws.percentile(1 - part_long + 0.05) == 17);
    CHECK(part_above(draws, 6) == Approx(part_long).margin(margin(part_long, count)));
    CHECK(draws.mean() == Approx(5 + 12 * part_above(draws, 6)));
  };
  SECTION("One pipeline is recorded: each of three is slow on its own") {
    check(draws_of(record_of({recorded(0, 0, "0F0", one_long())})), 1 - std::pow(0.75, 3));
  }
  SECTION("All recorded pipelines are slow in the same step") {
    check(draws_of(record_of({recorded(0, 0, "0F0", one_long()), recorded(1, 0, "0F0", one_long()),
                              recorded(2, 0, "0F0", one_long())})),
          0.25);
  }
  SECTION("Half of the time they are: correlated by a half") {
    // Two pipelines, whose deviations from their means have the product 4.5 of 9.
    const auto record = record_of({recorded(0, 0, "0F0", {4, 4, 10, 10, 4, 4, 10, 10}),
                                   recorded(1, 0, "0F0", {4, 4, 10, 10, 4, 10, 4, 10})});
    REQUIRE(together_in(record).pipelines == Approx(0.5));
    StepCosts costs = seconds_each(structure.program(), 2);
    costs.stages[0].forward = {7};
    const Draws draws = draw_iterations(structure, costs, Jitter(record), {.count = count});
    // JitterCorrelation, 5 of 8 steps have a slow one; independently, 3 of 4 pairs do.
    const double part_long = 0.5 * 5 / 8 + 0.5 * 3 / 4;
    CHECK(part_above(draws, 10) == Approx(part_long).margin(margin(part_long, count)));
  }
}

TEST_CASE("Ranks of a pipeline are slow in the same step, or in different steps", "[sim][draws]") {
  constexpr int count = 20'000;
  const Structure structure(lower(make("1f1b", 2, 1)));
  StepCosts costs = seconds_each(structure.program());
  costs.stages[0].forward = costs.stages[1].forward = {7};
  const auto part_of = [&](std::vector<double> second, double seconds) {
    const Jitter jitter(
        record_of({recorded(0, 0, "0F0", one_long()), recorded(0, 1, "1F0", std::move(second))}));
    return part_above(draw_iterations(structure, costs, jitter, {.count = count}), seconds);
  };
  // Backwards take 2 s. Both slow: 34 s; one: 22; none: 10.
  CHECK(part_of(one_long(), 33) == Approx(0.25).margin(margin(0.25, count)));
  CHECK(part_of(one_long(), 11) == Approx(0.25).margin(margin(0.25, count)));
  // Inversely correlated in the record: sampled independently.
  const double both = 1.0 / 16, any = 7.0 / 16;
  CHECK(part_of({16, 4, 4, 4}, 33) == Approx(both).margin(margin(both, count)));
  CHECK(part_of({16, 4, 4, 4}, 11) == Approx(any).margin(margin(any, count)));
}

TEST_CASE("Sampling several steps at a time gives the bits of sampling one at a time",
          "[sim][draws]") {
  std::mt19937 random(39);
  int timed = 0;
  for_each_structure([&](const Structure& structure) {
    const StepCosts costs = random_costs(structure.program(), random, 2 * (timed % 2));
    REQUIRE(LaneSimulator::can_time(structure, costs));
    const Jitter jitter(random_record(structure.program(), 1, 5, random));
    const JobJitter of_job(structure, 1, jitter);
    const LaneSimulator lanes(structure, costs, of_job);
    LaneSimulator::Memory memory;
    const auto found = lanes.iterations(7, 40, memory);
    Simulator alone(structure);
    StepCosts own = costs;
    bool equal = true;
    for (const std::size_t draw : {std::size_t{0}, std::size_t{9}, lanes.at_once() - 1}) {
      own.event_factors = of_job.event_factors(7, 40 + draw);
      equal = equal && found[draw] == alone.run(own).iteration;
    }
    CHECK(equal);
    ++timed;
  });
  CHECK(timed > 500);
  fmt::print("draws at once and alone, bit by bit: {} programs\n", timed);
}

TEST_CASE("Pipelines with individual durations wait at their all-reduces, as on one clock",
          "[sim][draws]") {
  std::mt19937 random(40);
  int timed = 0;
  for (const char* const name : {"1f1b", "gpipe", "interleaved-1f1b", "zbv"})
    for (const int zero : {0, 1, 2, 3})
      for (const int replicas : {2, 3}) {
        CAPTURE(name, zero, replicas);
        LoweringOptions options;
        options.replicas = replicas;
        options.zero = zero;
        options.share_loss = true;
        const Structure structure(lower(make(name, 2, 4), options));
        StepCosts costs = random_costs(structure.program(), random, 0);
        costs.replicas = replicas;
        costs.cluster.devices_per_node = replicas;
        // On a network the size of an all-reduce takes the time, not the latency of its steps.
        costs.cluster.within_node.latency = costs.cluster.between_nodes.latency = {};
        const Jitter jitter(random_record(structure.program(), 2, 4, random));
        const JobJitter of_job(structure, replicas, jitter);
        const LaneSimulator lanes(structure, costs, of_job);
        LaneSimulator::Memory memory;
        const auto found = lanes.iterations(1, 0, memory);
        for (std::size_t draw = 0; draw < 4; ++draw) {
          costs.event_factors = of_job.event_factors(1, draw);
          CHECK(simulate_shared_links(structure, costs).iteration ==
                Approx(found[draw]).epsilon(1e-12));
        }
        costs.event_factors.clear();
        ++timed;
      }
  CHECK(timed == 32);
}

TEST_CASE("Samples are equal for equal seeds, and a longer list begins like a shorter one",
          "[sim][draws]") {
  std::mt19937 random(41);
  const Structure structure(lower(make("1f1b", 4, 8), {.replicas = 2}));
  const StepCosts costs = seconds_each(structure.program(), 2);
  const Jitter jitter(random_record(structure.program(), 2, 16, random));
  const auto draws = [&](int count, std::uint64_t seed) {
    return draw_iterations(structure, costs, jitter, {.count = count, .seed = seed}).sorted();
  };
  CHECK(draws(1000, 5) == draws(1000, 5));
  CHECK(draws(1000, 5) != draws(1000, 6));
  const auto all = draws(1001, 5), first = draws(999, 5);
  CHECK(std::includes(all.begin(), all.end(), first.begin(), first.end()));
}

TEST_CASE("Jitter shortens the iteration of pipelines that share a network card", "[sim][draws]") {
  // Two pipelines of two ranks, each rank on its own node; a transfer takes half a forward.
  const Structure structure(lower(make("1f1b", 2, 8), {.replicas = 2}));
  StepCosts costs = seconds_each(structure.program(), 2);
  for (StageCost& stage : costs.stages)
    stage.output = stage.input_gradient_bytes = {50};
  costs.cluster.nodes = 2;
  costs.cluster.devices_per_node = 2;
  costs.cluster.between_nodes = {.latency = {}, .bandwidth_per_s = 100, .shared = true};
  Simulator simulator(structure);
  const double alone = simulator.run(costs).iteration;
  const double in_step = simulator.run_shared(costs).iteration;
  REQUIRE(in_step > alone);
  const auto mean_of = [&](double spread) {
    const Jitter jitter(record_of({recorded(0, 0, "0F0", {1 - spread, 1 + spread, 1, 1}),
                                   recorded(0, 0, "0B0", {1, 1, 1 + spread, 1 - spread}),
                                   recorded(0, 1, "1F0", {1, 1 - spread, 1 + spread, 1}),
                                   recorded(0, 1, "1B0", {1 - spread, 1, 1, 1 + spread})}));
    return draw_iterations(structure, costs, jitter, {.count = 400}).mean();
  };
  CHECK(mean_of(0) == Approx(in_step).epsilon(1e-12));
  CHECK(mean_of(0.1) < in_step);
}

TEST_CASE("Too few or too many samples are rejected", "[sim][draws]") {
  const Structure structure(lower(make("1f1b", 1, 1)));
  const Jitter jitter(record_of({recorded(0, 0, "0F0", {1, 2})}));
  const StepCosts costs = seconds_each(structure.program());
  CHECK(error_of([&] { draw_iterations(structure, costs, jitter, {.count = 0}); }) ==
        "0 draws: at least 1 is needed");
  CHECK(error_of([&] { draw_iterations(structure, costs, jitter, {.count = 2'000'000'000}); }) ==
        "2000000000 draws: at most 100000000 are possible");
}

}  // namespace draws_test
