#include "pipewright/sim/causes/idle.hpp"

#include <cmath>
#include <random>

#include "pipewright/plan/error.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/equal_ranks.hpp"
#include "sim/support/random_costs.hpp"
#include "sim/support/structures.hpp"

namespace idle_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

double caused(const IdleTime& idle, int rank, IdleCause cause) {
  return idle.by_cause[static_cast<std::size_t>(rank)][static_cast<std::size_t>(cause)];
}

double busy_of(const Structure& structure, const Times& times, int rank) {
  double busy = 0;
  for (int event = 0; event < structure.size(); ++event)
    if (structure.events()[event].rank == rank &&
        is_compute(structure.events()[event].instruction->kind))
      busy += times[event].end - times[event].start;
  return busy;
}

/// Returns "warm-up 0..2, transfer 2..3".
std::string text_of(const IdleTime& idle, int rank) {
  std::string text;
  for (const IdleSpan& span : idle.spans)
    if (span.rank == rank)
      text += fmt::format("{}{} {}..{}", text.empty() ? "" : ", ", to_string(span.cause),
                          span.start.value, span.end.value);
  return text;
}

StepCosts equal_costs(int stages, double latency, double occupancy = 0) {
  StepCosts costs;
  costs.stages.resize(static_cast<std::size_t>(stages));
  for (StageCost& stage : costs.stages) {
    stage.forward = stage.input_gradient = stage.weight_gradient = {1};
    stage.output = stage.input_gradient_bytes = {static_cast<std::int64_t>(100 * occupancy)};
    stage.gradients = {100};
  }
  costs.cluster.devices_per_node = 64;
  costs.cluster.within_node = {.latency = {latency}, .bandwidth_per_s = 100};
  return costs;
}

TEST_CASE("1F1B on two ranks, by hand", "[sim][idle]") {
  const Structure structure(lower(make("1f1b", 2, 2)));
  Simulator simulator(structure);
  IdleCauses causes(structure);
  // 0F0 0..1, 0F1 1..2; 1F0 1.5..2.5, 1B0 ..4.5, 1F1 ..5.5, 1B1 ..7.5; 0B0 5..7, 0B1 8..10.
  const IdleTime& idle = causes.of(simulator.run(equal_costs(2, 0.5)));
  CHECK(text_of(idle, 0) == "warm-up 2..4.5, transfer 4.5..5, cool-down 7..7.5, transfer 7.5..8");
  CHECK(text_of(idle, 1) == "warm-up 0..1, transfer 1..1.5, cool-down 7.5..10");
}

TEST_CASE("Long transfers on one link: idle time while each is in transit is transfer time",
          "[sim][idle]") {
  const Structure structure(lower(make("gpipe", 2, 2)));
  Simulator simulator(structure);
  IdleCauses causes(structure);
  // 0SEND_F0 1..4, 0SEND_F1 4..7; 1F0 4..5, 1F1 7..8; 1B0 8..10, 1B1 10..12; 1SEND_B1 13..16.
  const IdleTime& idle = causes.of(simulator.run(equal_costs(2, 0, 3)));
  CHECK(text_of(idle, 1) == "warm-up 0..1, transfer 1..4, transfer 5..7, cool-down 12..18");
  StepCosts costs = equal_costs(2, 0, 3);
  costs.stages[1].forward = {0.25};
  const IdleTime& quick = causes.of(simulator.run(costs));
  CHECK(text_of(quick, 1) ==
        "warm-up 0..1, transfer 1..4, transfer 4.25..7, cool-down 11.25..17.25");
}

TEST_CASE("One queue per rank: a receive that waits for a send is queue time", "[sim][idle]") {
  const Structure structure(lower(make("1f1b", 2, 2), {.communicators = CommunicatorLayout::Rank}));
  Simulator simulator(structure);
  IdleCauses causes(structure);
  // 1B0 ends at 5 and its gradient is sent until 6; the input of 1F1 arrived at 3.
  const IdleTime& idle = causes.of(simulator.run(equal_costs(2, 0, 1)));
  CHECK(text_of(idle, 1) == "warm-up 0..1, transfer 1..2, queue 5..6, cool-down 9..12");
}

TEST_CASE("An uneven stage is imbalance to the others", "[sim][idle]") {
  const Structure structure(lower(make("1f1b", 2, 4)));
  Simulator simulator(structure);
  IdleCauses causes(structure);
  StepCosts costs = equal_costs(2, 0);
  costs.stages[1].forward = {3};
  const IdleTime& idle = causes.of(simulator.run(costs));
  // 1F0 1..4 1B0 ..6 1F1 ..9 1B1 ..11 1F2 ..14 1B2 ..16 1F3 ..19 1B3 ..21
  // 0F0 0F1 ..2, 0B0 6..8, 0F2 ..9, 0B1 11..13, 0F3 ..14, 0B2 16..18, 0B3 21..23
  CHECK(text_of(idle, 0) == "warm-up 2..6, imbalance 9..11, cool-down 14..16, cool-down 18..21");
}

TEST_CASE("A step that waits for its reduction is exposed communication", "[sim][idle]") {
  const Structure structure(lower(make("1f1b", 2, 2), {.replicas = 2}));
  Simulator simulator(structure);
  IdleCauses causes(structure);
  StepCosts costs = equal_costs(2, 0);
  costs.replicas = 2;  // a ring of two: 2 · 1/2 · 100/100 = 1 s
  const IdleTime& idle = causes.of(simulator.run(costs));
  CHECK(text_of(idle, 0) == "warm-up 2..4, cool-down 6..7, exposed 9..10");
  CHECK(text_of(idle, 1) == "warm-up 0..1, exposed 7..8, cool-down 8..10");
}

TEST_CASE("A backward that waits for the previous all-reduce of gradients is exposed communication",
          "[sim][idle]") {
  const Structure structure(lower(make("gpipe", 1, 2), {.replicas = 2, .zero = 2}));
  Simulator simulator(structure);
  IdleCauses causes(structure);
  StepCosts costs = equal_costs(1, 0);
  costs.replicas = 2;  // a ring of two: 1/2 · 100/100 = 0.5 s
  CHECK(text_of(causes.of(simulator.run(costs)), 0) == "exposed 4..4.5, exposed 6.5..7");
}

TEST_CASE("Blocking transfers are exposed communication", "[sim][idle]") {
  const Structure structure(lower(make("gpipe", 2, 1), {.blocking = true}));
  Simulator simulator(structure);
  IdleCauses causes(structure);
  const IdleTime& idle = causes.of(simulator.run(equal_costs(2, 0, 1)));
  CHECK(text_of(idle, 0) == "exposed 1..2, warm-up 2..5, exposed 5..6");
  CHECK(text_of(idle, 1) == "warm-up 0..1, exposed 1..2, exposed 5..6, cool-down 6..8");
}

TEST_CASE("The causes of idle time add up to it: every schedule, every way to communicate",
          "[sim][idle]") {
  std::mt19937 random(31);
  const int structures = for_each_structure([&](const Structure& structure) {
    Simulator simulator(structure);
    IdleCauses causes(structure);
    for (int round = 0; round < 2; ++round) {
      const Times& times = simulator.run(random_costs(structure.program(), random, round));
      const IdleTime& idle = causes.of(times);
      double from_spans = 0;
      for (const IdleSpan& span : idle.spans) {
        REQUIRE(span.end > span.start);
        from_spans += (span.end - span.start).value;
      }
      double all = 0;
      const int ranks = static_cast<int>(structure.program().ranks.size());
      for (int rank = 0; rank < ranks; ++rank) {
        const double idle_time = times.iteration - busy_of(structure, times, rank);
        REQUIRE(std::abs(idle.of_rank(rank) - idle_time) <= 1e-12 * times.iteration);
        all += idle.of_rank(rank);
      }
      REQUIRE(std::abs(all - from_spans) <= 1e-12 * ranks * times.iteration);
    }
  });
  CHECK(structures > 500);
}

TEST_CASE("Where times are sums of powers of two, the causes add up bit by bit", "[sim][idle]") {
  int structures = for_each_structure([&](const Structure& structure) {
    Simulator simulator(structure);
    IdleCauses causes(structure);
    StepCosts costs = equal_costs(stage_count(structure.program()), 0.125, 0.25);
    for (StageCost& stage : costs.stages)
      stage.output = stage.input_gradient_bytes = stage.gradients = {32};
    costs.cluster.within_node.bandwidth_per_s = 128;
    const Times& times = simulator.run(costs);
    const IdleTime& idle = causes.of(times);
    for (int rank = 0; rank < static_cast<int>(structure.program().ranks.size()); ++rank)
      REQUIRE(idle.of_rank(rank) == times.iteration - busy_of(structure, times, rank));
  });
  CHECK(structures > 500);
}

TEST_CASE("Without transfer times equal stages idle in warm-up and cool-down alone",
          "[sim][idle]") {
  for (const std::string name : {"gpipe", "1f1b"}) {
    const Structure structure(lower(make(name, 4, 8)));
    Simulator simulator(structure);
    IdleCauses causes(structure);
    const IdleTime& idle = causes.of(simulator.run(equal_costs(4, 0)));
    for (int rank = 0; rank < 4; ++rank)
      CHECK(caused(idle, rank, IdleCause::WarmUp) + caused(idle, rank, IdleCause::CoolDown) == 9);
  }
}

}  // namespace idle_test
