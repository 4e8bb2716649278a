#include "pipewright/sim/causes/sensitivity.hpp"

#include <cmath>
#include <random>

#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/random_costs.hpp"
#include "sim/support/structures.hpp"

namespace sensitivity_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

/// Returns the saving of a step that is small enough to stay on the same longest path, most of the
/// time.
template <class Change>
double difference(const Structure& structure, StepCosts costs, double step, const Change& change) {
  Simulator simulator(structure);
  const double before = simulator.iteration(costs);
  change(costs, step);
  return (before - simulator.iteration(costs)) / step;
}

TEST_CASE("Equal stages: a second less on one of them saves little, on the slowest nearly all",
          "[sim][sensitivity]") {
  StepCosts costs;
  costs.stages.resize(4);
  for (StageCost& stage : costs.stages)
    stage.forward = stage.input_gradient = {1};
  costs.cluster.devices_per_node = 4;
  const Structure structure(lower(make("1f1b", 4, 8)));
  Simulator simulator(structure);
  const auto found = stage_sensitivities(structure, simulator.run(costs), costs);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    // Many paths are equally long; the one that passes the stage least often decides.
    const double saved = stage == 3 ? 2 : 1;
    CHECK(found[stage].forward == saved);
    CHECK(found[stage].all == saved);
    CHECK(difference(structure, costs, 0x1p-10, [&](StepCosts& less, double by) {
            less.stages[stage].forward.value -= by;
          }) == saved);
  }
  costs.stages[2].forward = {1.5};
  const auto uneven = stage_sensitivities(structure, simulator.run(costs), costs);
  CHECK(uneven[2].forward == 7);  // the slow stage sets the pace
  CHECK(uneven[1].forward == 1);
}

TEST_CASE("Sensitivities equal finite differences: stages", "[sim][sensitivity]") {
  std::mt19937 random(51);
  int compared = 0;
  for_each_structure([&](const Structure& structure) {
    Simulator simulator(structure);
    StepCosts costs = random_costs(structure.program(), random, 2 * (compared % 3));
    costs.jitter = 0;
    const auto found = stage_sensitivities(structure, simulator.run(costs), costs);
    const std::size_t stage = static_cast<std::size_t>(compared) % found.size();
    constexpr double step = 1e-7;
    CHECK(difference(structure, costs, step, [&](StepCosts& less, double by) {
            less.stages[stage].forward.value -= by;
          }) == Approx(found[stage].forward).margin(1e-4));
    CHECK(difference(structure, costs, step, [&](StepCosts& less, double by) {
            less.stages[stage].weight_gradient.value -= by;
          }) == Approx(found[stage].weight_gradient).margin(1e-4));
    ++compared;
  });
  CHECK(compared > 500);
  fmt::print("sensitivities beside finite differences: {} programs\n", compared);
}

TEST_CASE("Sensitivities equal finite differences: links", "[sim][sensitivity]") {
  std::mt19937 random(52);
  int compared = 0;
  for_each_structure([&](const Structure& structure) {
    // All links change together here, including those of reductions, which do not join two ranks.
    for (int event = 0; event < structure.size(); ++event)
      if (is_collective(structure.events()[event].instruction->kind))
        return;
    Simulator simulator(structure);
    StepCosts costs = random_costs(structure.program(), random, 0);
    costs.cluster.nodes = 1;
    costs.cluster.devices_per_node = 4;
    const auto found = link_sensitivities(structure, simulator.run(costs));
    double sum = 0;
    for (const LinkSensitivity& link : found)
      sum += link.latency;
    CHECK(difference(structure, costs, 1e-7, [](StepCosts& less, double by) {
            less.cluster.within_node.latency.value -= by;
          }) == Approx(sum).margin(1e-4));
    ++compared;
  });
  CHECK(compared > 300);
}

}  // namespace sensitivity_test
