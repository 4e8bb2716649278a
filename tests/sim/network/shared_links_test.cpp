#include "pipewright/sim/network/shared_links.hpp"

#include <fmt/format.h>

#include <random>

#include "pipewright/plan/error.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/simgrid/simgrid.hpp"
#include "sim/support/equal_ranks.hpp"
#include "sim/support/random_costs.hpp"
#include "sim/support/two_nodes.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace shared_links_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

TEST_CASE("Without shared links every time is that of the native engine, busy cores included",
          "[sim][shared_links]") {
  std::mt19937 random(41);
  int programs = 0, round = 0;
  for (const std::string& name : schedule_names())
    for (const auto& [ranks, microbatches] : {std::pair{1, 3}, {2, 4}, {4, 8}})
      for (const LoweringOptions& options : all_ways_to_communicate()) {
        CAPTURE(name, ranks, microbatches);
        try {
          const Structure structure(lower(make(name, ranks, microbatches), options));
          StepCosts costs = random_costs(structure.program(), random, round++);
          Simulator simulator(structure);
          const Times& expected = simulator.run(costs);
          REQUIRE(largest_difference(simulate_shared_links(structure, costs), expected) <=
                  1e-12 * expected.iteration);
          REQUIRE(largest_difference(simulator.run_shared(costs), simulator.run(costs)) == 0);
          make_contended(costs, random, 2 + round % 3);
          if (round % 2 == 1)  // all on one node, more than cores
            costs.cluster.devices_per_node = ranks;
          const Times& contended = simulator.run(costs);
          REQUIRE(largest_difference(simulate_shared_links(structure, costs), contended) <=
                  1e-12 * contended.iteration);
          ++programs;
        } catch (const InputError&) {  // sizes that the schedule does not support
        } catch (const Infeasible&) {  // a deadlock
        }
      }
  CHECK(programs > 800);
}

/// Returns nodes of one device; two are a group, whose outgoing link carries 100 bytes per second
/// for all.
StepCosts three_levels(int pipelines) {
  StepCosts costs = seconds_and_hundreds(2, two_nodes(1, false));
  costs.cluster.nodes = 2 * pipelines;
  costs.cluster.between_nodes.bandwidth_per_s = 50;
  costs.cluster.fabric = {
      .levels = {{"spine", pipelines, {.latency = {0}, .bandwidth_per_s = 100, .shared = true}}}};
  costs.replicas = pipelines;
  return costs;
}

TEST_CASE("Transfers that leave a group of nodes share its outgoing link", "[sim][shared_links]") {
  const Structure structure(lower(make("inference", 2, 1)));
  const auto sent = [&](const StepCosts& costs) {
    return end_of(structure, simulate_shared_links(structure, costs), "0SEND_F0") - 1;
  };
  StepCosts costs = three_levels(4);
  CHECK(sent(costs) == 4);  // four times 100 bytes
  costs.cluster.fabric->levels[0].link.oversubscription = 2;
  CHECK(sent(costs) == 8);
  costs = three_levels(4);
  costs.cluster.between_nodes = {.latency = {}, .bandwidth_per_s = 10, .shared = true};
  CHECK(sent(costs) == 10);  // the node's own card is narrower than its share
  // … and than the outgoing link, which a single pipeline has to itself.
  StepCosts alone = three_levels(1);
  alone.cluster.between_nodes = costs.cluster.between_nodes;
  Simulator simulator(structure);
  CHECK(end_of(structure, simulator.run(alone), "0SEND_F0") == 2);
  CHECK(end_of(structure, simulator.run_shared(alone), "0SEND_F0") == 11);
  SECTION("A link that nobody shares further out is no wider for a wide card") {
    costs.cluster.between_nodes = {.latency = {}, .bandwidth_per_s = 1000, .shared = true};
    costs.cluster.fabric->levels[0].link = {.latency = {}, .bandwidth_per_s = 20};
    CHECK(sent(costs) == 5);
  }
}

TEST_CASE("Two pipelines with one network card take twice as long for simultaneous transfers",
          "[sim][shared_links]") {
  const Structure structure(lower(make("inference", 2, 1)));
  StepCosts costs = seconds_and_hundreds(2, two_nodes(2, true));
  costs.replicas = 2;
  const Times times = simulate_shared_links(structure, costs);
  CHECK(end_of(structure, times, "0SEND_F0") == 3);  // 1 s of compute, 100 bytes at 50 per second
  CHECK(times.iteration == 4);
}

TEST_CASE("Pipelines slow each other down on their cores and on their network card",
          "[sim][shared_links][busy-cores]") {
  const Structure structure(lower(make("inference", 2, 1)));
  StepCosts costs = seconds_and_hundreds(2, two_nodes(2, true));
  costs.replicas = 2;
  costs.contended = costs.stages;
  for (StageCost& stage : costs.contended)
    stage.forward = {1.5};
  costs.busy_cores = 2;
  Simulator simulator(structure);
  const Times& times = simulator.run_shared(costs);
  CHECK(end_of(structure, times, "0SEND_F0") == 3.5);
  CHECK(times.iteration == 5);
  costs.cluster.between_nodes.shared = false;
  CHECK(simulator.run_shared(costs).iteration == 4);
}

TEST_CASE("An all-reduce on a bus takes its measured time", "[sim][shared_links]") {
  const Structure structure(lower(make("gpipe", 1, 1), {.replicas = 3}));
  StepCosts costs = seconds_and_hundreds(1, two_nodes(3, true));
  costs.replicas = 3;
  costs.stages[0].gradients = {600};
  Simulator simulator(structure);
  // Three flows of 800 bytes on a bus of 100 bytes per second, concurrently.
  const double compute = simulator.iteration(costs) - 8;
  CHECK(simulate_shared_links(structure, costs).iteration == Approx(compute + 24));
  CHECK(simulator.run_shared(costs).iteration == Approx(compute + 24));
  costs.cluster.within_node.collective_bandwidth_per_s = 50;
  CHECK(simulator.iteration(costs) == Approx(compute + 16));
  CHECK(simulate_shared_links(structure, costs).iteration == Approx(compute + 16));
  CHECK(simulator.run_shared(costs).iteration == Approx(compute + 16));
}

TEST_CASE("A flow continues at the link's full bandwidth once it is alone", "[sim][shared_links]") {
  const Structure structure(lower(make("inference", 2, 2)));
  StepCosts costs = seconds_and_hundreds(2, two_nodes(1, true));
  costs.cluster.nodes = 1;
  costs.cluster.devices_per_node = 2;
  costs.stages[0].output = {200};
  costs.stages[0].forward = {1};
  const Times times = simulate_shared_links(structure, costs);
  // One queue: 0SEND_F0 from 1 to 3, 0SEND_F1 from 3 to 5. No transfers share.
  CHECK(end_of(structure, times, "0SEND_F0") == 3);
  CHECK(end_of(structure, times, "0SEND_F1") == 5);

  const Structure both(lower(make("1f1b", 2, 2)));
  StepCosts uneven = seconds_and_hundreds(2, two_nodes(1, true));
  uneven.microbatch_lengths = {1, 2.5};
  uneven.cluster.nodes = 1;
  uneven.cluster.devices_per_node = 2;
  // 0SEND_F1, 250 bytes, has the bus from 3.5 on; 1SEND_B0, 100 bytes, shares it from 4 to 6, and
  // the remaining 100 bytes have it to themselves.
  const Times shared = simulate_shared_links(both, uneven);
  CHECK(end_of(both, shared, "1SEND_B0") == 6);
  CHECK(end_of(both, shared, "0SEND_F1") == 7);
}

TEST_CASE("SimGrid gives shared links the same times", "[sim][shared_links][simgrid]") {
  if (!built_with_simgrid())
    pipewright::test::skip("built without SimGrid");
  std::mt19937 random(43);
  int programs = 0, slower = 0;
  double largest = 0;
  for (const std::string& name : schedule_names())
    for (const int replicas : {1, 2, 4})
      for (const bool bus : {false, true}) {
        CAPTURE(name, replicas, bus);
        try {
          LoweringOptions options;
          options.replicas = replicas;
          options.share_loss = true;
          const Structure structure(lower(make(name, 4, 8), options));
          StepCosts costs = random_costs(structure.program(), random, 1);
          costs.replicas = replicas;
          costs.cluster.nodes = bus ? 1 : 4;
          costs.cluster.devices_per_node = bus ? 4 * replicas : replicas;
          costs.cluster.within_node.shared = costs.cluster.between_nodes.shared = true;
          costs.cluster.within_node.segments.clear();
          if (!bus && programs % 3 == 2)  // a shared card, and a shared link out of two nodes
            costs.cluster.fabric = {.levels = {{"spine",
                                                2,
                                                {.latency = {0.1},
                                                 .bandwidth_per_s = 40,
                                                 .shared = programs % 2 == 0,
                                                 .oversubscription = 2}}}};
          const Times simgrid = simulate_on_simgrid(structure, costs);
          if (programs % 2 == 1) {  // compute is tracked, but has no effect
            costs.contended = costs.stages;
            costs.busy_cores = 2;
          }
          const Times own = simulate_shared_links(structure, costs);
          const double difference = largest_difference(own, simgrid) / own.iteration;
          REQUIRE(difference <= 1e-8);
          largest = std::max(largest, difference);
          slower += own.iteration > Simulator(structure).iteration(costs) * (1 + 1e-6) ? 1 : 0;
          ++programs;
        } catch (const InputError&) {
        }
      }
  CHECK(programs > 100);
  CHECK(slower > programs / 4);  // sharing has an effect
  fmt::print(
      "SimGrid gives shared links the same times in {} programs; largest difference {:.1e}\n",
      programs, largest);
}

}  // namespace shared_links_test
