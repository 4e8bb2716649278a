#include "pipewright/sim/engine/simulator.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "pipewright/sim/scenario/simulate.hpp"
#include "sim/support/equal_ranks.hpp"
#include "sim/support/random_costs.hpp"
#include "sim/support/structures.hpp"
#include "support/error_of.hpp"

namespace simulator_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

TEST_CASE("The fast and the complete simulation have the same bits", "[sim][simulator]") {
  std::mt19937 random(21);
  const int structures = for_each_structure([&](const Structure& structure) {
    Simulator simulator(structure);
    const StepCosts any = random_costs(structure.program(), random, 0);
    const double first = simulator.iteration(any);
    for (int ask = 1; ask < Structure::asks_before_reduction; ++ask)
      CHECK(simulator.iteration(any) == first);
    for (int round = 0; round < 5; ++round) {
      const StepCosts costs = random_costs(structure.program(), random, round);
      const double quick = simulator.iteration(costs);
      REQUIRE(quick == simulator.run(costs).iteration);
      REQUIRE(quick > 0);
    }
  });
  CHECK(structures > 500);
  fmt::print("quick and full iteration times, bit by bit: {} programs, 5 cost vectors each\n",
             structures);
}

TEST_CASE("A Structure is timed under other costs as if it were new", "[sim][simulator]") {
  std::mt19937 random(22);
  const Structure structure(lower(make("interleaved-1f1b", 4, 8, 2)));
  Simulator kept(structure);
  for (int round = 0; round < 20; ++round) {
    const StepCosts costs = random_costs(structure.program(), random, round);
    Simulator fresh(structure);
    CHECK(kept.iteration(costs) == fresh.iteration(costs));
  }
}

TEST_CASE("An iteration that is not finite is rejected", "[sim][simulator]") {
  StepCosts costs;
  costs.stages.resize(2);
  for (StageCost& stage : costs.stages)
    stage.forward = stage.input_gradient = stage.weight_gradient = {1e308};
  costs.cluster.devices_per_node = 2;
  const Structure structure(lower(make("gpipe", 2, 2)));
  Simulator simulator(structure);
  for (const auto& run : std::vector<std::function<void()>>{
           [&] { simulator.iteration(costs); },
           [&] { simulator.run(costs); },
           [&] { simulator.run_shared(costs); },
       })
    CHECK(error_of(run).starts_with("an iteration takes inf s: "));
}

TEST_CASE("A slower rank computes longer, and a longer microbatch takes longer to send",
          "[sim][simulator]") {
  StepCosts costs;
  costs.stages.resize(2);
  for (StageCost& stage : costs.stages)
    stage.forward = stage.input_gradient = stage.weight_gradient = {1};
  costs.stages[0].output = {100};
  costs.cluster.devices_per_node = 2;
  costs.cluster.within_node = {.latency = {0.5}, .bandwidth_per_s = 100};
  const Structure structure(lower(make("gpipe", 2, 2)));
  Simulator simulator(structure);
  // 0F0 1, transfer 1.5, then 1F0 1F1 1B0 1B1 of 6, transfer 0.5, 0B1 2.
  CHECK(simulator.iteration(costs) == 11);
  costs.cluster.rank_speeds = {1, 0.5};
  CHECK(simulator.iteration(costs) == 17);
  costs.cluster.rank_speeds.clear();
  costs.microbatch_lengths = {1, 3};
  // 0F0 0F1 until 4; 0F1 takes 3 s to send and arrives at 7.5; 1F1 3, 1B0 2, 1B1 6, 0.5, 0B1 6.
  CHECK(simulator.iteration(costs) == 25);
}

TEST_CASE("Jitter: equal seeds give equal times, with the requested mean and spread",
          "[sim][simulator]") {
  StepCosts costs;
  costs.stages.resize(1);
  costs.stages[0].forward = costs.stages[0].input_gradient = {1};
  costs.jitter = 0.1;
  const Structure structure(lower(make("1f1b", 1, 5000)));
  Simulator simulator(structure);
  const double first = simulator.iteration(costs);
  CHECK(simulator.iteration(costs) == first);
  costs.seed = 1;
  CHECK(simulator.iteration(costs) != first);

  const Times& times = simulator.run(costs);
  double sum = 0, squares = 0;
  for (const EventTimes& event : times.events) {
    const double length = event.end - event.start;
    sum += length;
    squares += length * length;
  }
  const double mean = sum / 10000;
  CHECK(mean == Approx(1).margin(0.005));
  CHECK(std::sqrt(squares / 10000 - mean * mean) == Approx(0.1).margin(0.005));
}

TEST_CASE("Invalid costs are rejected, all at once", "[sim][simulator]") {
  const Program program = lower(make("1f1b", 2, 2));
  StepCosts costs;
  costs.stages.resize(2);
  costs.stages[1].forward = {std::numeric_limits<double>::quiet_NaN()};
  costs.stages[0].weight_gradient = {-1};
  costs.cluster.within_node.bandwidth_per_s = 0;
  costs.cluster.rank_speeds = {1, 0};
  costs.microbatch_lengths = {1};
  CHECK(error_of([&] { require_usable(costs, program); }) ==
        "the weight gradient of stage 0 is -1 s: a time must be 0 or more, and finite\n"
        "the forward of stage 1 is nan s: a time must be 0 or more, and finite\n"
        "the bandwidth within a node is 0 bytes/s: it must be more than 0\n"
        "lengths of microbatches are given for 1, but the program has 2\n"
        "the speed of rank 1 is 0: it must be more than 0, and finite");
}

TEST_CASE("Reductions over replicas: a ring during the backward, or after it", "[sim][simulator]") {
  StepCosts costs;
  costs.stages.resize(2);
  for (StageCost& stage : costs.stages) {
    stage.forward = stage.input_gradient = {1};
    stage.gradients = {400};
  }
  costs.replicas = 4;
  costs.cluster.nodes = 2;
  costs.cluster.devices_per_node = 4;
  costs.cluster.within_node = {.latency = {0.125}, .bandwidth_per_s = 600};
  costs.cluster.between_nodes = {.latency = {}, .bandwidth_per_s = 600};
  const auto length = [&](const Program& program) {
    const Structure structure(program);
    return Simulator(structure).iteration(costs);
  };
  const Schedule schedule = make("1f1b", 2, 2);
  // The pipeline takes 6 s; a ring of four 2 · 3/4 · 400/600 + 2 · 3 · 0.125 = 1.75 s.
  CHECK(length(lower(schedule)) == 6);
  CHECK(length(lower(schedule, {.replicas = 4})) == 7.75);

  // With both stages on one rank, their rings run one after the other. Stage 1 is done at 6 of 8 s.
  const Schedule one_rank = parse_csv("0F0,1F0,0F1,1F1,1B0,1B1,0B0,0B1\n", "one.csv");
  CHECK(length(lower(one_rank, {.replicas = 4})) == 9.75);
  CHECK(length(lower(one_rank, {.replicas = 4, .overlap_reductions = false})) == 11.5);
}

TEST_CASE("A tied weight's gradient is all-reduced between its stages", "[sim][simulator]") {
  StepCosts costs;
  costs.stages.resize(2);
  for (StageCost& stage : costs.stages) {
    stage.forward = stage.input_gradient = {1};
    stage.tied = {100};
  }
  costs.cluster.devices_per_node = 2;
  costs.cluster.within_node = {.latency = {0.125}, .bandwidth_per_s = 100};
  const Structure structure(lower(make("1f1b", 2, 2), {.tied_stages = {0, 1}}));
  // 6 s and four transfers of 0.125 on the path; then a ring of two: 2 · 1/2 · 1 + 2 · 0.125.
  CHECK(Simulator(structure).iteration(costs) == 6 + 2 * 0.125 + 1.25);
}

TEST_CASE("A tied weight's all-reduce runs during the backward of another stage, or after it",
          "[sim][simulator]") {
  StepCosts costs;
  costs.stages.resize(3);
  for (StageCost& stage : costs.stages)
    stage.forward = stage.input_gradient = {1};
  costs.stages[1].tied = costs.stages[2].tied = {400};
  costs.cluster.devices_per_node = 2;
  costs.cluster.within_node = {.latency = {}, .bandwidth_per_s = 100};
  // Stages 0 and 2 are on rank 0, stage 1 on rank 1: the weight's gradients exist at 5, all at 6.
  const Schedule schedule = parse_csv("0F0,2F0,2B0,0B0\n1F0,1B0\n", "s.csv");
  const auto length = [&](bool overlap) {
    const Structure structure(
        lower(schedule, {.overlap_reductions = overlap, .tied_stages = {1, 2}}));
    return Simulator(structure).iteration(costs);
  };
  CHECK(length(true) == 9);    // 5 and a ring of two over 400 bytes
  CHECK(length(false) == 10);  // the same, starting at 6
}

}  // namespace simulator_test
