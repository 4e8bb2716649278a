#include "pipewright/sim/explain.hpp"

#include "pipewright/sim/simulator.hpp"
#include "sim/support/equal_ranks.hpp"
#include "support/error_of.hpp"

namespace explain_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

StepCosts costs_of(int stages, double latency) {
  StepCosts costs;
  costs.stages.resize(static_cast<std::size_t>(stages));
  for (StageCost& stage : costs.stages)
    stage.forward = stage.input_gradient = {1e-3};
  costs.cluster.devices_per_node = stages;
  costs.cluster.within_node.latency = {latency};
  return costs;
}

TEST_CASE("Why a rank is idle, in a sentence", "[sim][explain]") {
  const Structure structure(lower(make("1f1b", 3, 3)));
  Simulator simulator(structure);
  const Times& times = simulator.run(costs_of(3, 0.5e-3));
  const auto at = [&](int rank, double ms) { return explain(structure, times, rank, 1e-3 * ms); };
  CHECK(at(0, 0.5) == "rank 0 is not idle at 0.500 ms: it runs 0F0 from 0.000 ms to 1.000 ms");
  CHECK(at(2, 0.5) ==
        "rank 2 is idle from 0.000 ms to 3.000 ms: 2F0 waits for 1F0 of rank 1, which is idle as "
        "well: 1F0 waits for data from rank 0, which runs 0F0 from 0.000 ms to 1.000 ms");
  CHECK(at(2, 1.2) ==
        "rank 2 is idle from 0.000 ms to 3.000 ms: 2F0 waits for 1F0 of rank 1, which is idle as "
        "well: 1F0 waits for data from rank 0: 0SEND_F0 is on its way from 1.000 ms to 1.500 ms");
  CHECK(at(1, 1.2) ==
        "rank 1 is idle from 0.000 ms to 1.500 ms: 1F0 waits for data from rank 0: 0SEND_F0 is on "
        "its way from 1.000 ms to 1.500 ms");
  CHECK(at(2, 12.9).find("it has nothing left to do; the iteration ends with") !=
        std::string::npos);
}

TEST_CASE("A rank or a time that does not exist is refused", "[sim][explain]") {
  const Structure structure(lower(make("1f1b", 2, 2)));
  Simulator simulator(structure);
  const Times& times = simulator.run(costs_of(2, 0));
  CHECK(error_of([&] { explain(structure, times, 2, 0); }) ==
        "there is no rank 2: the program has ranks 0 to 1");
  CHECK(error_of([&] { explain(structure, times, 0, 1); }) ==
        "1000.000 ms lies outside the iteration, which lasts 6.000 ms");
}

}  // namespace explain_test
