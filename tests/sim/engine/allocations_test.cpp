#include "sim/support/allocations.hpp"

#include <random>
#include <string_view>
#include <vector>

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/deadlock.hpp"
#include "pipewright/plan/schedules/schedule.hpp"
#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/memory/memory.hpp"
#include "sim/support/random_costs.hpp"
#include "support/catch.hpp"

namespace allocations_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

template <class Work>
std::size_t allocations_during(const Work& work) {
  const std::size_t before = allocations();
  work();
  return allocations() - before;
}

/// Returns the costs of a round, with memory and gradients that two pipelines all-reduce.
StepCosts costs_of(const Program& program, int replicas, int round) {
  std::mt19937 random(static_cast<unsigned>(round));
  StepCosts costs = random_costs(program, random, round);
  costs.replicas = replicas;
  costs.cluster.devices_per_node *= replicas;
  for (StageCost& stage : costs.stages)
    stage.activation = stage.tied = {1000 + round};
  return costs;
}

TEST_CASE("The count of allocations includes those of a growing vector", "[sim][allocations]") {
  std::vector<int> numbers;
  CHECK(allocations_during([&] { numbers.resize(100); }) == 1);
}

TEST_CASE("Timing a Program again under other costs allocates nothing", "[sim][allocations]") {
  int timed_programs = 0;
  for (const char* name : {"1f1b", "interleaved-1f1b", "zb-h1", "chimera"})
    for (LoweringOptions options : all_ways_to_communicate()) {
      ScheduleRequest request;
      request.name = name;
      request.ranks = 4;
      request.microbatches = 8;
      request.chunks = std::string_view(name) == "interleaved-1f1b" ? 2 : 1;
      options.tied_stages = {0, 3};
      if (options.zero > 1 && request.name == "chimera")
        continue;  // not supported by schedules in two directions
      const Program program = lower(make_schedule(request), options);
      if (find_deadlock(Dependencies(program)))
        continue;  // some Programs deadlock over some communicators
      ++timed_programs;
      const Structure structure(program);
      Simulator simulator(structure);
      IdleCauses causes(structure);
      MemoryModel model(structure, {TensorTransfer::Copy});
      const auto in_round = [&](int round) {
        const StepCosts costs = costs_of(structure.program(), options.replicas, round);
        return allocations_during([&] {
          simulator.iteration(costs);
          const Times& times = simulator.run(costs);
          causes.of(times);
          model.curves(costs, times);
        });
      };
      // The most general costs: unequal lengths and speeds, and jitter; until the graph is reduced.
      for (int ask = 0; ask <= Structure::asks_before_reduction; ++ask)
        in_round(11);
      for (const int round : {0, 1, 2, 3, 5, 8}) {
        INFO(name << " in round " << round);
        CHECK(in_round(round) == 0);
      }
    }
  CHECK(timed_programs > 20);
}

}  // namespace allocations_test
