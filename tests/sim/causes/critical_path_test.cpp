#include "pipewright/sim/causes/critical_path.hpp"

#include <random>

#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/delay.hpp"
#include "sim/support/random_costs.hpp"
#include "sim/support/structures.hpp"

namespace critical_path_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

std::string text_of(const Structure& structure, const std::vector<int>& path) {
  std::string text;
  for (const int event : path)
    text += (text.empty() ? "" : " ") + to_string(*structure.events()[event].instruction);
  return text;
}

TEST_CASE("The critical path runs through the slow stage", "[sim][critical]") {
  StepCosts costs;
  costs.stages.resize(2);
  for (StageCost& stage : costs.stages)
    stage.forward = stage.input_gradient = {1};
  costs.stages[1].forward = {3};
  costs.cluster.devices_per_node = 2;
  costs.cluster.within_node.latency = {0.5};
  const Structure structure(lower(make("1f1b", 2, 3)));
  Simulator simulator(structure);
  const Times& times = simulator.run(costs);
  CHECK(text_of(structure, critical_path(structure, times)) ==
        "0F0 0SEND_F0 1RECV_F0 1F0 1B0 1LOAD1 1F1 1B1 1LOAD2 1F2 1B2 1SEND_B2 0RECV_B2 0B2");
  const auto slacks = slack(structure, times);
  const auto slack_of = [&](const std::string& text) {
    for (int event = 0; event < structure.size(); ++event)
      if (to_string(*structure.events()[event].instruction) == text)
        return slacks[static_cast<std::size_t>(event)];
    FAIL(text);
    return 0.0;
  };
  CHECK(slack_of("1F1") == 0);
  CHECK(slack_of("0B2") == 0);
  CHECK(slack_of("0F1") == 3);  // ends at 2; its data may arrive 3 s later than 2.5
}

TEST_CASE("Slack is what an event can be late: more of it moves the iteration, less does not",
          "[sim][critical]") {
  std::mt19937 random(41);
  int events = 0;
  for_each_structure([&](const Structure& structure) {
    Simulator simulator(structure);
    const StepCosts costs = random_costs(structure.program(), random, 4 * (events % 2));
    const Times times = simulator.run(costs);
    const auto slacks = slack(structure, times);
    const auto path = critical_path(structure, times);
    for (const int event : path)
      REQUIRE(slacks[static_cast<std::size_t>(event)] <= 1e-12 * times.iteration);
    // One event of each program is made longer, with everything else unchanged.
    const int event = std::uniform_int_distribution(0, structure.size() - 1)(random);
    if (is_receive(structure.events()[event].instruction->kind))
      return;
    const double room = slacks[static_cast<std::size_t>(event)];
    REQUIRE(iteration_with_delay(structure, simulator.durations(), event, room * 0.999) <=
            times.iteration * (1 + 1e-12));
    REQUIRE(iteration_with_delay(structure, simulator.durations(), event, room + 0.01) >=
            times.iteration + 0.01 - 1e-9);
    ++events;
  });
  CHECK(events > 300);
}

}  // namespace critical_path_test
