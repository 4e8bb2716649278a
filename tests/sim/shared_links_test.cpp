#include "pipewright/sim/shared_links.hpp"

#include <fmt/format.h>

#include <random>

#include "pipewright/plan/error.hpp"
#include "pipewright/sim/simgrid.hpp"
#include "pipewright/sim/simulator.hpp"
#include "sim/support/equal_ranks.hpp"
#include "sim/support/random_costs.hpp"
#include "support/catch.hpp"

namespace shared_links_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

double largest_difference(const Times& one, const Times& other) {
  REQUIRE(one.events.size() == other.events.size());
  double largest = std::abs(one.iteration - other.iteration);
  for (std::size_t i = 0; i < one.events.size(); ++i)
    largest = std::max({largest, std::abs(one.events[i].start - other.events[i].start),
                        std::abs(one.events[i].released - other.events[i].released),
                        std::abs(one.events[i].end - other.events[i].end)});
  return largest;
}

/// Two nodes of `width` devices, whose cards, and buses inside, move 100 bytes per second.
StepCosts shared_costs(int stages, int width) {
  StepCosts costs;
  costs.cluster.nodes = 2;
  costs.cluster.devices_per_node = width;
  costs.cluster.within_node =
      costs.cluster.between_nodes = {.latency = {0}, .bandwidth_per_s = 100, .shared = true};
  costs.stages.resize(static_cast<std::size_t>(stages));
  for (StageCost& stage : costs.stages) {
    stage.forward = stage.input_gradient = {1};
    stage.output = stage.input_gradient_bytes = {100};
  }
  return costs;
}

double end_of(const Structure& structure, const Times& times, const std::string& instruction) {
  for (int event = 0; event < structure.size(); ++event)
    if (to_string(*structure.events()[event].instruction) == instruction)
      return times[event].end;
  FAIL("no instruction " << instruction);
  return 0;
}

TEST_CASE("Where nothing is shared every time is that of the longest path, to the last bit",
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
          costs.jitter = 0;  // a ring waits for its slowest flow, not each member for its own
          Simulator simulator(structure);
          const Times& expected = simulator.run(costs);
          REQUIRE(largest_difference(simulate_shared_links(structure, costs), expected) <=
                  1e-12 * expected.iteration);
          REQUIRE(largest_difference(simulator.run_shared(costs), simulator.run(costs)) == 0);
          ++programs;
        } catch (const InputError&) {  // sizes that the schedule does not take
        } catch (const Infeasible&) {  // a deadlock
        }
      }
  CHECK(programs > 800);
}

TEST_CASE("Two pipelines behind one card take twice as long to send what they send at once",
          "[sim][shared_links]") {
  const Structure structure(lower(make("inference", 2, 1)));
  StepCosts costs = shared_costs(2, 2);
  costs.replicas = 2;
  const Times times = simulate_shared_links(structure, costs);
  CHECK(end_of(structure, times, "0SEND_F0") == 3);  // 1 s of compute, 100 bytes at 50 a second
  CHECK(times.iteration == 4);
}

TEST_CASE("A flow that is left alone goes on with all of the link", "[sim][shared_links]") {
  const Structure structure(lower(make("inference", 2, 2)));
  StepCosts costs = shared_costs(2, 1);
  costs.cluster.nodes = 1;
  costs.cluster.devices_per_node = 2;
  costs.stages[0].output = {200};
  costs.stages[0].forward = {1};
  const Times times = simulate_shared_links(structure, costs);
  // One queue: 0SEND_F0 from 1 to 3, 0SEND_F1 from 3 to 5. Nobody shares.
  CHECK(end_of(structure, times, "0SEND_F0") == 3);
  CHECK(end_of(structure, times, "0SEND_F1") == 5);

  const Structure both(lower(make("1f1b", 2, 2)));
  StepCosts uneven = shared_costs(2, 1);
  uneven.microbatch_lengths = {1, 2.5};
  uneven.cluster.nodes = 1;
  uneven.cluster.devices_per_node = 2;
  // 0SEND_F1, 250 bytes, has the bus from 3.5 on; 1SEND_B0, 100 bytes, shares it from 4 to 6, and
  // the 100 bytes that are left go alone.
  const Times shared = simulate_shared_links(both, uneven);
  CHECK(end_of(both, shared, "1SEND_B0") == 6);
  CHECK(end_of(both, shared, "0SEND_F1") == 7);
}

TEST_CASE("SimGrid shares links in the same times", "[sim][shared_links][simgrid]") {
  if (!built_with_simgrid()) {
    WARN("skipped: built without SimGrid");
    return;
  }
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
          costs.jitter = 0;
          costs.replicas = replicas;
          costs.cluster.nodes = bus ? 1 : 4;
          costs.cluster.devices_per_node = bus ? 4 * replicas : replicas;
          costs.cluster.within_node.shared = costs.cluster.between_nodes.shared = true;
          costs.cluster.within_node.segments.clear();
          const Times simgrid = simulate_on_simgrid(structure, costs);
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
  CHECK(slower > programs / 4);  // sharing matters
  fmt::print("SimGrid shares links in the same times in {} programs; largest difference {:.1e}\n",
             programs, largest);
}

}  // namespace shared_links_test
