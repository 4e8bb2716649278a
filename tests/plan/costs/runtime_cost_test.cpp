#include "pipewright/plan/costs/runtime_cost.hpp"

#include "pipewright/plan/cluster/runtime_messages.hpp"
#include "pipewright/plan/costs/stage_costs.hpp"
#include "support/catch.hpp"

namespace runtime_cost_test {

using namespace pipewright::plan;

StageCost stage() {
  StageCost cost;
  cost.forward = {1};
  cost.input_gradient = {2};
  cost.weight_gradient = {4};
  cost.splitting = {0.5};
  cost.freed_by_input_gradient = {10};
  return cost;
}

RuntimeCost runtime() {
  return {.name = "another",
          .forward = {0.125},
          .backward = {0.25},
          .input_gradient = {0.0625},
          .weight_gradient = {0.5},
          .send = {0.75},
          .send_bandwidth_per_s = 8,
          .receive = {0.375},
          .receive_bandwidth_per_s = 16};
}

TEST_CASE("The runtime's overhead is added to each action of a stage", "[plan][costs]") {
  std::vector<StageCost> stages{stage(), stage()};
  add_actions(stages, runtime());
  for (const StageCost& cost : stages) {
    CHECK(cost.forward == Seconds{1.125});
    CHECK(cost.input_gradient == Seconds{2.0625});
    CHECK(cost.weight_gradient == Seconds{4.5});
    CHECK(backward_time(cost) == Seconds{5.75});
    CHECK(cost.freed_by_input_gradient == Bytes{10});
  }
}

TEST_CASE("A first stage with an unsplit backward runs it in the second of two parts",
          "[plan][costs]") {
  std::vector<StageCost> stages{stage(), stage()};
  RuntimeCost whole = runtime();
  whole.whole_first_backward = true;
  add_actions(stages, whole);
  CHECK(stages[0].input_gradient == Seconds{0.0625});
  CHECK(stages[0].weight_gradient == Seconds{6});
  CHECK(backward_time(stages[0]) == Seconds{5.75});  // unsplit, as before
  CHECK(stages[0].freed_by_input_gradient == Bytes{});
  CHECK(stages[1].input_gradient == Seconds{2.0625});
}

TEST_CASE("A runtime's message overheads apply to all links", "[plan][costs]") {
  Cluster cluster;
  cluster.within_node.overheads.send = {{3}};
  cluster.within_node.overheads.sum = {{4}};
  const Cluster own = with_messages(cluster, runtime());
  for (const Link& link : {own.within_node, own.between_nodes}) {
    CHECK(time_of(link.overheads.send, Bytes{2}) == Seconds{1});
    CHECK(time_of(link.overheads.receive, Bytes{2}) == Seconds{0.5});
  }
  CHECK(own.within_node.overheads.sum == cluster.within_node.overheads.sum);
}

}  // namespace runtime_cost_test
