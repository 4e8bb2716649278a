// Transfers that keep their ranks from computing.

#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/structures.hpp"
#include "support/error_of.hpp"

namespace overheads_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

/// Returns costs with forward 1, backward 2 and transfers that take no time.
StepCosts two_ranks() {
  StepCosts costs;
  costs.stages.resize(2);
  for (StageCost& stage : costs.stages) {
    stage.forward = stage.input_gradient = stage.weight_gradient = {1};
    stage.output = stage.input_gradient_bytes = {100};
  }
  costs.cluster.devices_per_node = 2;
  costs.cluster.within_node.bandwidth_per_s = 1e300;
  return costs;
}

double start_of(const Structure& structure, const Times& times, const std::string& action) {
  for (int event = 0; event < structure.size(); ++event)
    if (to_string(*structure.events()[event].instruction) == action)
      return times[event].start;
  FAIL(action << " is missing");
  return 0;
}

TEST_CASE("A send delays the sender's next compute action, but not the data", "[sim][overheads]") {
  const Structure structure(lower(make("gpipe", 2, 2)));
  Simulator simulator(structure);
  StepCosts costs = two_ranks();
  CHECK(simulator.iteration(costs) == 9);
  costs.cluster.within_node.overheads.send = {{0.25}};
  const Times& times = simulator.run(costs);
  CHECK(start_of(structure, times, "1F0") == 1);
  CHECK(start_of(structure, times, "0F1") == 1.25);
  CHECK(start_of(structure, times, "1F1") == 2.25);  // waits for its data, and is not delayed
  CHECK(start_of(structure, times, "1B0") == 3.25);
  CHECK(start_of(structure, times, "0B0") == 5.25);
  CHECK(start_of(structure, times, "1B1") == 5.5);
  CHECK(times.iteration == 9.5);
  CHECK(simulator.iteration(costs) == 9.5);
  costs.cluster.within_node.overheads.send.bandwidth_per_s = 400;  // as much again, for 100 bytes
  CHECK(start_of(structure, simulator.run(costs), "0F1") == 1.5);
}

TEST_CASE("A receive delays the receiver's next compute action as well", "[sim][overheads]") {
  const Structure structure(lower(make("gpipe", 2, 2)));
  Simulator simulator(structure);
  StepCosts costs = two_ranks();
  costs.cluster.within_node.overheads.receive = {{0.25}};
  const Times& times = simulator.run(costs);
  CHECK(start_of(structure, times, "0F1") == 1);
  CHECK(start_of(structure, times, "1F1") == 2.25);
  CHECK(start_of(structure, times, "1B0") == 3.5);
  CHECK(start_of(structure, times, "1B1") == 5.5);  // it received no data
  CHECK(start_of(structure, times, "0B0") == 5.5);
  CHECK(start_of(structure, times, "0B1") == 7.75);
}

TEST_CASE("A rank with blocking transfers, or without any, is not delayed", "[sim][overheads]") {
  StepCosts costs = two_ranks();
  costs.cluster.within_node.overheads.send = costs.cluster.within_node.overheads.receive = {{0.25}};
  LoweringOptions options;
  options.blocking = true;
  const Structure blocking(lower(make("gpipe", 2, 2), options));
  CHECK(Simulator(blocking).iteration(costs) == 9);
  costs.stages.resize(1);
  const Structure alone(lower(make("gpipe", 1, 2)));
  CHECK(Simulator(alone).iteration(costs) == 6);
}

TEST_CASE("An all-reduce slows down the compute that overlaps it, but not a step that waits for it",
          "[sim][overheads]") {
  // Each rank has both stages, whose gradients are reduced over both ranks. The reduction of the
  // stage whose last backward comes first overlaps with the other's last backward.
  const Structure structure(lower(make("chimera", 2, 2)));
  Simulator simulator(structure);
  StepCosts costs = two_ranks();
  for (StageCost& stage : costs.stages) {
    stage.gradients = {200};
    stage.optimizer_step = {1};
  }
  const double without = simulator.iteration(costs);
  costs.cluster.within_node.overheads.sum = {{0.125}, 800};
  const Times& times = simulator.run(costs);
  const Dependencies& events = structure.events();
  for (int event = 0; event < structure.size(); ++event) {
    const std::string action = to_string(*events[event].instruction);
    // Two rounds of one step, of 100 bytes each.
    const double kept = 2 * (0.125 + 0.125);
    CAPTURE(action);
    if (action == "0B0" || action == "0B1")
      CHECK(times[event].end - times[event].start == 2 + kept);
    else if (action == "1B0" || action == "1B1")
      CHECK(times[event].end - times[event].start == 2);
    else if (action == "0STEP" || action == "1STEP")
      CHECK(times[event].end - times[event].start == 1);
  }
  CHECK(simulator.iteration(costs) == without + 0.5);
}

TEST_CASE("Ranks that slow each other down have the delay as well", "[sim][overheads]") {
  const Structure structure(lower(make("1f1b", 2, 4)));
  Simulator simulator(structure);
  StepCosts costs = two_ranks();
  costs.cluster.within_node.overheads.send = {{0.25}};
  const double wanted = simulator.iteration(costs);
  costs.contended = costs.stages;
  costs.busy_cores = 2;
  CHECK(simulator.iteration(costs) == Approx(wanted).epsilon(1e-12));
}

TEST_CASE("The delay by transfers counts as launch time", "[sim][overheads]") {
  const Structure structure(lower(make("gpipe", 2, 2)));
  Simulator simulator(structure);
  StepCosts costs = two_ranks();
  costs.cluster.within_node.overheads.send = {{0.25}};
  const IdleTime& idle = IdleCauses(structure).of(simulator.run(costs));
  CHECK(idle.by_cause[0][static_cast<std::size_t>(IdleCause::Launch)] == 0.25);  // 0F1
  CHECK(idle.by_cause[1][static_cast<std::size_t>(IdleCause::Launch)] == 0.5);   // 1B1, the step
}

TEST_CASE("Invalid overheads are rejected", "[sim][overheads]") {
  const Structure structure(lower(make("gpipe", 2, 2)));
  StepCosts costs = two_ranks();
  costs.cluster.within_node.overheads.send = {{-1}, -2};
  costs.cluster.within_node.overheads.sum = {{-3}};
  const std::string said = error_of([&] { require_usable(costs, structure.program()); });
  CHECK(said.find("the overhead of senders within a node is -1 s") != std::string::npos);
  CHECK(said.find("overhead of senders within a node is -2 bytes/s") != std::string::npos);
  CHECK(said.find("the overhead of all-reduces within a node is -3 s") != std::string::npos);
}

}  // namespace overheads_test
