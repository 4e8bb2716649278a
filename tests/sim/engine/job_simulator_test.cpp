#include "pipewright/sim/engine/job_simulator.hpp"

#include <fmt/format.h>

#include <random>

#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/structures.hpp"
#include "sim/support/two_nodes.hpp"
#include "support/error_of.hpp"

namespace job_simulator_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

bool same(const EventTimes& a, const EventTimes& b) {
  return a.start == b.start && a.released == b.released && a.end == b.end;
}

/// Returns the pipelines of a job as one Program, in which each microbatch uses one of them: rank r
/// of replica c is rank r · copies + c.
Program side_by_side(const Program& one, int copies) {
  Program all = one;
  all.microbatches *= copies;
  all.ranks.clear();
  for (const auto& list : one.ranks)
    for (int copy = 0; copy < copies; ++copy)
      for (Instruction& i : all.ranks.emplace_back(list))
        if (i.microbatch >= 0)
          i.microbatch = i.microbatch * copies + copy;
  all.placement.routes.clear();
  all.placement.route_of_microbatch.clear();
  for (int copy = 0; copy < copies; ++copy)
    for (std::vector<int> route : one.placement.routes) {
      for (int& rank : route)
        rank = rank * copies + copy;
      all.placement.routes.push_back(std::move(route));
    }
  const auto routes = static_cast<int>(one.placement.routes.size());
  for (int m = 0; m < one.microbatches; ++m)
    for (int copy = 0; copy < copies; ++copy)
      all.placement.route_of_microbatch.push_back(copy * routes + one.placement.route_of(m));
  return all;
}

/// Returns, by event of the one pipeline and replica, its number in the Program of all.
std::vector<std::vector<int>> numbers(const Program& one, int copies) {
  std::vector<std::vector<int>> found;
  int first = 0;
  for (const auto& list : one.ranks) {
    const auto size = static_cast<int>(list.size());
    for (int at = 0; at < size; ++at) {
      std::vector<int>& own = found.emplace_back();
      for (int copy = 0; copy < copies; ++copy)
        own.push_back(copies * first + copy * size + at);
    }
    first += size;
  }
  return found;
}

/// Returns the same costs for the Program of all pipelines.
StepCosts of_all(const StepCosts& costs, const std::vector<std::vector<int>>& number) {
  StepCosts all = costs;
  const int copies = costs.replicas;
  all.replicas = 1;
  all.microbatch_lengths.clear();
  for (const double length : costs.microbatch_lengths)
    all.microbatch_lengths.insert(all.microbatch_lengths.end(), static_cast<std::size_t>(copies),
                                  length);
  all.cluster.rank_speeds.clear();
  for (const double speed : costs.cluster.rank_speeds)
    all.cluster.rank_speeds.insert(all.cluster.rank_speeds.end(), static_cast<std::size_t>(copies),
                                   speed);
  for (std::size_t event = 0; event < number.size(); ++event)
    for (std::size_t copy = 0; copy < number[event].size(); ++copy)
      all.event_factors[static_cast<std::size_t>(number[event][copy])] =
          costs.event_factors[copy * number.size() + event];
  return all;
}

/// Returns true if gradients of each microbatch are reduced; in that Program each has its own
/// replicas.
bool sums_microbatches(const Program& program) {
  for (const auto& list : program.ranks)
    for (const Instruction& i : list)
      if (is_collective(i.kind) && i.microbatch >= 0)
        return true;
  return false;
}

TEST_CASE("Simulating each device separately gives the bits of one Program with all of them",
          "[sim][job_simulator]") {
  std::mt19937 random(7);
  std::uniform_real_distribution factor(0.5, 2.0);
  int round = 0, jobs = 0;
  for_each_structure([&](const Structure& structure) {
    StepCosts costs = random_costs(structure.program(), random, round++);
    costs.jitter = 0;
    if (++jobs % 4 != 0 || sums_microbatches(structure.program()))
      return;
    for (Link* link : links_of(costs.cluster))
      link->overheads = {};
    const int copies = costs.replicas = round % 8 < 4 ? 3 : 35;  // of one block, and of two
    for (int event = 0; event < structure.size() * copies; ++event)
      costs.event_factors.push_back(factor(random));
    costs.cluster.nodes = 3;  // pipelines are on different nodes
    costs.cluster.devices_per_node = static_cast<int>(structure.program().ranks.size());
    const auto number = numbers(structure.program(), copies);
    const Structure all(side_by_side(structure.program(), copies));
    Simulator plain(all);
    const Times& expected = plain.run(of_all(costs, number));
    JobSimulator simulator(structure);
    const JobTimes& times = simulator.run(costs);
    REQUIRE(times.iteration() == expected.iteration);
    for (int event = 0; event < structure.size(); ++event)
      for (int copy = 0; copy < copies; ++copy)
        REQUIRE(same(
            times.of(event, copy),
            expected[number[static_cast<std::size_t>(event)][static_cast<std::size_t>(copy)]]));
  });
  CHECK(jobs > 800);
}

TEST_CASE("Equal devices have the times of one pipeline, including its own jitter",
          "[sim][job_simulator]") {
  const Structure structure(lower(make("interleaved-1f1b", 4, 8), {.replicas = 5}));
  std::mt19937 random(1);
  StepCosts costs = random_costs(structure.program(), random, 0);
  costs.replicas = 5;
  costs.shards = 2;
  costs.cluster.within_node = costs.cluster.between_nodes;
  Simulator plain(structure);
  JobSimulator simulator(structure);
  const Times& expected = plain.run(costs);
  const JobTimes& times = simulator.run(costs);
  CHECK(times.members() == 10);
  REQUIRE(times.iteration() == expected.iteration);
  for (int event = 0; event < structure.size(); ++event)
    for (int member = 0; member < times.members(); ++member)
      REQUIRE(same(times.of(event, member), expected[event]));
  costs.replicas = costs.shards = 1;
  costs.jitter = 0.3;
  CHECK(simulator.run(costs).iteration() == plain.run(costs).iteration);
  costs.replicas = 5;  // four more are sampled, and all wait for the last
  CHECK(simulator.run(costs).iteration() > plain.run(costs).iteration);
}

TEST_CASE(
    "Tensor-parallel ranks are as fast as their slowest, replicas wait for each other only in "
    "all-reduces",
    "[sim][job_simulator]") {
  const Structure structure(lower(make("1f1b", 1, 2), {.replicas = 2}));
  StepCosts costs = seconds_and_hundreds(1, two_nodes(2, false));
  costs.replicas = costs.shards = 2;
  costs.cluster.nodes = 4;
  costs.cluster.devices_per_node = 1;
  costs.cluster.mixture = {
      .kinds = {{.nodes = 3, .device = {}}, {.nodes = 1, .device = {}, .speed = 0.5}}};
  JobSimulator simulator(structure);
  const JobTimes& times = simulator.run(costs);
  CHECK(times.ready() == std::vector<double>{4, 4, 8, 8});
  CHECK(times.iteration() == 8);
  CHECK(Simulator(structure).run(costs).iteration == 8);  // like the slowest of them
}

TEST_CASE("Tensor-parallel ranks send on separate links and continue together",
          "[sim][job_simulator]") {
  const Structure structure(lower(make("inference", 2, 1)));
  StepCosts costs = seconds_and_hundreds(2, two_nodes(3, false));
  costs.cluster.between_nodes.bandwidth_per_s = 50;
  costs.shards = 2;
  costs.devices = {2, 0, 3, 1};  // between nodes, and within one
  JobSimulator simulator(structure);
  const JobTimes& times = simulator.run(costs);
  const auto ends = [&](const std::string& instruction) {
    int event = 0;
    while (to_string(*structure.events()[event].instruction) != instruction)
      ++event;
    return std::vector{times.of(event, 0).end, times.of(event, 1).end};
  };
  CHECK(ends("1RECV_F0") == std::vector<double>{3, 2});
  CHECK(ends("1F0") == std::vector<double>{4, 4});
}

TEST_CASE("Features that need one clock are rejected", "[sim][job_simulator]") {
  const Structure structure(lower(make("1f1b", 2, 2)));
  JobSimulator simulator(structure);
  CHECK(error_of([&] { simulator.run(seconds_and_hundreds(2, two_nodes(1, true))); }) ==
        "devices cannot be simulated individually: transfers share links of the cluster");
}

}  // namespace job_simulator_test
