// Ranks that slow each other down while they compute at once.

#include <algorithm>
#include <random>

#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/equal_ranks.hpp"
#include "sim/support/random_costs.hpp"
#include "sim/support/structures.hpp"
#include "support/error_of.hpp"

namespace busy_cores_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

/// Returns costs with forward 1 and backward 2, or 50 % more while the other rank computes.
StepCosts two_ranks() {
  StepCosts costs;
  costs.stages.resize(2);
  for (StageCost& stage : costs.stages)
    stage.forward = stage.input_gradient = stage.weight_gradient = {1};
  costs.contended = costs.stages;
  for (StageCost& stage : costs.contended)
    stage.forward = stage.input_gradient = stage.weight_gradient = {1.5};
  costs.busy_cores = 2;
  costs.cluster.devices_per_node = 2;
  costs.cluster.within_node.bandwidth_per_s = 1e12;
  return costs;
}

TEST_CASE("Two ranks at once take longer than each alone", "[sim][busy-cores]") {
  const Structure structure(lower(make("gpipe", 2, 2)));
  Simulator simulator(structure);
  StepCosts costs = two_ranks();
  // Alone 0F0 until 1 and 1F1 1B0 from 2.5 to 5.5, together 0F1 1F0 and 0B0 1B1, alone 0B1.
  CHECK(simulator.iteration(costs) == 10.5);
  costs.cluster.nodes = 2;
  costs.cluster.devices_per_node = 1;
  costs.cluster.between_nodes.bandwidth_per_s = 1e12;
  CHECK(simulator.iteration(costs) == 9);
}

TEST_CASE("An action that another one overlaps in part slows down for that part",
          "[sim][busy-cores]") {
  StepCosts costs = two_ranks();
  costs.stages[1].forward = costs.contended[1].forward = {0.5};
  const Structure structure(lower(make("gpipe", 2, 2)));
  Simulator simulator(structure);
  const Times& times = simulator.run(costs);
  // 0F1 runs from 1 on; 1F0 overlaps it until 1.5, when a third of it is done.
  for (int event = 0; event < structure.size(); ++event)
    if (to_string(*structure.events()[event].instruction) == "0F1")
      CHECK(times[event].end == Approx(1.5 + 2.0 / 3).epsilon(1e-12));
}

TEST_CASE("Between one busy rank and all of them the slowdown is linear in their number",
          "[sim][busy-cores]") {
  StepCosts costs = two_ranks();
  costs.stages.resize(4, costs.stages[0]);
  costs.contended.resize(4, costs.contended[0]);
  costs.busy_cores = 4;
  costs.cluster.devices_per_node = 4;
  const Structure structure(lower(make("data-parallel", 2, 1)));
  costs.stages.resize(1);
  costs.contended.resize(1);
  Simulator simulator(structure);
  // Two of four busy ranks: a third of the way from 3 to 4.5.
  CHECK(simulator.iteration(costs) == Approx(3.5).epsilon(1e-12));
  costs.replicas = 2;  // now four
  CHECK(simulator.iteration(costs) == Approx(4.5).epsilon(1e-12));
}

TEST_CASE("Contended costs equal to the uncontended ones change no bit",
          "[sim][busy-cores][soak]") {
  std::mt19937 random(31);
  const int structures = for_each_paired_structure([&](const Structure& structure) {
    Simulator simulator(structure);
    for (int round = 0; round < 4; ++round) {
      StepCosts costs = random_costs(structure.program(), random, round);
      const Times native = simulator.run(costs);
      costs.contended = costs.stages;
      costs.busy_cores = 3;
      const Times& times = simulator.run(costs);
      REQUIRE(times.iteration == native.iteration);
      for (int event = 0; event < structure.size(); ++event)
        REQUIRE((times[event].start == native[event].start &&
                 times[event].end == native[event].end &&
                 times[event].released == native[event].released));
    }
  });
  CHECK(structures > (covers_all() ? 500 : 100));
}

/// Returns the work that is done between an event's start and its end, by the rule of
/// docs/time-and-memory: 1 if its end is right.
double work_done(const Structure& structure, const StepCosts& costs, const Times& times, int event,
                 double alone, double contended) {
  const auto rank_of = [&](int e) { return structure.events()[e].rank; };
  const auto node = [&](int e) { return node_of(costs.cluster, rank_of(e) * costs.replicas); };
  std::vector<double> instants{times[event].start, times[event].end};
  std::vector<int> others;
  for (int other = 0; other < structure.size(); ++other) {
    if (other == event || node(other) != node(event) ||
        !is_compute(structure.events()[other].instruction->kind))
      continue;
    others.push_back(other);
    for (const double at : {times[other].start, times[other].end})
      if (at > times[event].start && at < times[event].end)
        instants.push_back(at);
  }
  std::sort(instants.begin(), instants.end());
  double work = 0;
  for (std::size_t i = 1; i < instants.size(); ++i) {
    const double middle = (instants[i - 1] + instants[i]) / 2;
    int busy = costs.replicas;
    for (const int other : others)
      if (times[other].start < middle && middle < times[other].end)
        busy += costs.replicas;
    busy = std::min(busy, costs.busy_cores);
    const double duration = alone + (contended - alone) * (busy - 1) / (costs.busy_cores - 1);
    work += (instants[i] - instants[i - 1]) / duration;
  }
  return work;
}

TEST_CASE("Every action does its work between start and end, and starts by the native rules",
          "[sim][busy-cores][soak]") {
  std::mt19937 random(32);
  int round = 0;
  const int structures = for_each_paired_structure([&](const Structure& structure) {
    StepCosts costs = random_costs(structure.program(), random, round);
    make_contended(costs, random, 2 + round++ % 3);
    Simulator simulator(structure);
    const Times times = simulator.run(costs);
    REQUIRE(simulator.iteration(costs) == times.iteration);

    Durations alone, contended;
    alone.fill(structure, costs);
    contended.fill(structure, costs, costs.contended);
    StepCosts as_it_came = costs;
    as_it_came.contended.clear();
    as_it_came.event_factors.assign(static_cast<std::size_t>(structure.size()), 1.0);
    // The factors do not include the delay of compute by collectives.
    StepCosts without_sums = costs;
    for (Link* const link :
         {&without_sums.cluster.within_node, &without_sums.cluster.between_nodes})
      link->overheads.sum = {};
    Durations work;
    work.fill(structure, without_sums);
    for (int event = 0; event < structure.size(); ++event) {
      const double by_itself = alone.of(structure, event).held;
      if (!is_compute(structure.events()[event].instruction->kind) || by_itself < 1e-9)
        continue;
      REQUIRE(work_done(structure, costs, times, event, by_itself,
                        contended.of(structure, event).held) == Approx(1).epsilon(1e-8));
      const double own = work.of(structure, event).held;
      if (own > 0)
        as_it_came.event_factors[static_cast<std::size_t>(event)] =
            (times[event].end - times[event].start - (by_itself - own)) / own;
    }
    const Times& native = simulator.run(as_it_came);
    for (int event = 0; event < structure.size(); ++event)
      REQUIRE(times[event].start == Approx(native[event].start).epsilon(1e-9).margin(1e-9));
  });
  CHECK(structures > (covers_all() ? 500 : 100));
}

TEST_CASE("Invalid contended costs are rejected", "[sim][busy-cores]") {
  const Program program = lower(make("1f1b", 2, 2));
  StepCosts costs = two_ranks();
  costs.busy_cores = 1;
  costs.contended[1].forward = {-1};
  CHECK(error_of([&] { require_usable(costs, program); }) ==
        "the forward, contended, of stage 1 is -1 s: a time must be 0 or more, and finite\n"
        "contended costs are those of 1 busy cores: it must be at least 2");
}

}  // namespace busy_cores_test
