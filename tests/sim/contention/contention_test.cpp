#include "pipewright/sim/contention/contention.hpp"

#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/equal_ranks.hpp"

namespace contention_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

/// Returns four ranks on two nodes of two; every transfer takes a second.
StepCosts two_nodes() {
  StepCosts costs;
  costs.stages.resize(4);
  for (StageCost& stage : costs.stages) {
    stage.forward = stage.input_gradient = {1};
    stage.output = stage.input_gradient_bytes = {100};
  }
  costs.cluster.nodes = 2;
  costs.cluster.devices_per_node = 2;
  costs.cluster.within_node = costs.cluster.between_nodes = {.latency = {}, .bandwidth_per_s = 100};
  costs.cluster.between_nodes.shared = true;
  return costs;
}

TEST_CASE("One pipeline through two nodes shares no link: its simulated time is exact",
          "[sim][contention]") {
  const Structure structure(lower(make("1f1b", 4, 4)));
  Simulator simulator(structure);
  const StepCosts costs = two_nodes();
  CHECK(shared_link_overlaps(structure, costs, simulator.run(costs)).empty());
  CHECK(in_words({}, structure).empty());
}

TEST_CASE("Two data-parallel pipelines share the network cards of their nodes",
          "[sim][contention]") {
  const Structure structure(lower(make("gpipe", 2, 1), {.replicas = 2}));
  StepCosts costs = two_nodes();
  costs.stages.resize(2);
  costs.replicas = 2;  // rank 0 is devices 0 and 1 on node 0, rank 1 is 2 and 3 on node 1
  Simulator simulator(structure);
  const auto found = shared_link_overlaps(structure, costs, simulator.run(costs));
  REQUIRE(found.size() == 4);
  CHECK(found[0].link == "the network card of node 0, incoming");
  CHECK(found[1].link == "the network card of node 0, outgoing");
  CHECK(found[1].most == 2);
  CHECK(found[1].seconds == 1);
  CHECK(found[1].first == 1);
  CHECK(
      in_words(found, structure) ==
      "the answer is a lower bound: transfers overlap on 4 shared links, most on the network card "
      "of node 0, incoming for 1.000 s, up to 2 at once, first 1SEND_B0 with 1SEND_B0 at "
      "4.000 s; `simulate` shares the bandwidth");
  costs.cluster.between_nodes.shared = false;
  CHECK(shared_link_overlaps(structure, costs, simulator.run(costs)).empty());
}

TEST_CASE("Opposite directions share the bus of a node, not its network card",
          "[sim][contention]") {
  // 0SEND_F1 from 2 to 3 while 1SEND_B0 goes from 4 to 5; 0SEND_F1 is later with a longer 0F1.
  const Structure structure(lower(make("1f1b", 2, 2)));
  StepCosts costs = two_nodes();
  costs.stages.resize(2);
  costs.microbatch_lengths = {1, 2.5};
  costs.cluster.nodes = 1;
  costs.cluster.within_node.shared = true;
  Simulator simulator(structure);
  const auto found = shared_link_overlaps(structure, costs, simulator.run(costs));
  REQUIRE(found.size() == 1);
  CHECK(found[0].link == "the bus of node 0");
  // 0SEND_F1 from 3.5 to 6, 1SEND_B0 from 4 to 5.
  CHECK(found[0].first == 4);
  CHECK(found[0].seconds == 1);
}

}  // namespace contention_test
