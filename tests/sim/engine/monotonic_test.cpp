#include <algorithm>
#include <random>

#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/delay.hpp"
#include "sim/support/structures.hpp"

namespace monotonic_test {

// A Program fixes every order, and no link is shared: so if anything takes longer, nothing ends
// earlier.

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

/// Makes one thing slower: an action of a stage, a transfer, a link, a rank, a microbatch or a
/// reduction.
void slow_down(StepCosts& costs, std::mt19937& random, int what) {
  const auto longer = [&] { return std::uniform_real_distribution(0.01, 3.0)(random); };
  const auto any_of = [&](auto& list) -> auto& {
    return list[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random)];
  };
  StageCost& stage = any_of(costs.stages);
  switch (what) {
    case 0:
      stage.forward += Seconds{longer()};
      break;
    case 1:
      stage.input_gradient += Seconds{longer()};
      break;
    case 2:
      stage.weight_gradient += Seconds{longer()};
      break;
    case 3:
      stage.optimizer_step += Seconds{longer()};
      break;
    case 4:
      stage.load += Seconds{longer()};
      break;
    case 5:
      stage.output += Bytes{20};
      break;
    case 6:
      stage.input_gradient_bytes += Bytes{20};
      break;
    case 7:
      stage.gradients += Bytes{20};
      break;
    case 8:
      costs.cluster.within_node.latency += Seconds{longer()};
      break;
    case 9:
      costs.cluster.between_nodes.bandwidth_per_s /= 1 + longer();
      break;
    case 10:
      if (!costs.cluster.rank_speeds.empty())
        any_of(costs.cluster.rank_speeds) /= 1 + longer();
      break;
    case 11:
      if (!costs.microbatch_lengths.empty())
        any_of(costs.microbatch_lengths) *= 1 + longer();
      break;
  }
}
constexpr int things_to_slow_down = 12;

TEST_CASE(
    "Under every schedule and every way to communicate, a slower cost never shortens the step",
    "[sim][simulator]") {
  std::mt19937 random(31);
  int pairs = 0, longer = 0;
  const int structures = for_each_structure([&](const Structure& structure) {
    Simulator simulator(structure);
    for (int what = 0; what < things_to_slow_down; ++what) {
      StepCosts costs = random_costs(structure.program(), random, what);
      costs.replicas = 2;
      const double before = simulator.iteration(costs);
      slow_down(costs, random, what);
      CAPTURE(what, before);
      const double after = simulator.iteration(costs);
      REQUIRE(after >= before);
      ++pairs;
      longer += after > before;
    }
  });
  CHECK(structures > 500);
  CHECK(longer * 2 > pairs);  // most changes have an effect
  fmt::print("a slower cost never shortened the step: {} programs, {} changes, {} felt\n",
             structures, pairs, longer);
}

TEST_CASE(
    "A delay of any one event never shortens the step, and lengthens it by no more than itself",
    "[sim][simulator]") {
  std::mt19937 random(32);
  int delays = 0;
  for_each_structure([&](const Structure& structure) {
    Simulator simulator(structure);
    const StepCosts costs = random_costs(structure.program(), random, 3);
    const double before = simulator.iteration(costs);
    for (int round = 0; round < 8; ++round) {
      const int event = std::uniform_int_distribution(0, structure.size() - 1)(random);
      const double delay = std::uniform_real_distribution(0.01, 3.0)(random);
      const double after = iteration_with_delay(structure, simulator.durations(), event, delay);
      CAPTURE(event, delay);
      REQUIRE(after >= before);
      REQUIRE(after <= before + delay + 1e-9);
      ++delays;
    }
  });
  fmt::print("one event delayed: {} times\n", delays);
}

}  // namespace monotonic_test
