#include "pipewright/sim/causes/why_idle.hpp"

#include <random>

#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/causes/measured_times.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/equal_ranks.hpp"
#include "sim/support/structures.hpp"
#include "support/error_of.hpp"

namespace why_idle_test {

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

TEST_CASE("A sentence explains why a rank is idle", "[sim][why_idle]") {
  const Structure structure(lower(make("1f1b", 3, 3)));
  Simulator simulator(structure);
  const Times& times = simulator.run(costs_of(3, 0.5e-3));
  const auto at = [&](int rank, double ms) {
    return why_idle(structure, times, rank, 1e-3 * ms).sentence;
  };
  CHECK(at(0, 0.5) == "rank 0 is not idle at 500.0 µs: it runs 0F0 from 0 ms to 1.000 ms");
  CHECK(at(2, 0.5) ==
        "rank 2 is idle from 0 ms to 3.000 ms: 2F0 waits for 1F0 of rank 1, which is idle as "
        "well: 1F0 waits for data from rank 0, which runs 0F0 from 0 ms to 1.000 ms");
  CHECK(at(2, 1.2) ==
        "rank 2 is idle from 0 ms to 3.000 ms: 2F0 waits for 1F0 of rank 1, which is idle as "
        "well: 1F0 waits for data from rank 0: 0SEND_F0 is on its way from 1.000 ms to 1.500 ms");
  CHECK(at(1, 1.2) ==
        "rank 1 is idle from 0 ms to 1.500 ms: 1F0 waits for data from rank 0: 0SEND_F0 is on "
        "its way from 1.000 ms to 1.500 ms");
  CHECK(at(2, 12.9).find("it has nothing left to do; the iteration ends with") !=
        std::string::npos);
}

TEST_CASE("The chain of events leads from the delayed action to the cause of its delay",
          "[sim][why_idle]") {
  const Structure structure(lower(make("1f1b", 3, 3)));
  Simulator simulator(structure);
  const Times& times = simulator.run(costs_of(3, 0.5e-3));
  const auto at = [&](int rank, double ms) { return why_idle(structure, times, rank, 1e-3 * ms); };
  const auto names = [&](const WhyIdle& explanation) {
    std::string text;
    for (const int event : explanation.chain)
      text += to_string(*structure.events()[event].instruction) + " ";
    return text;
  };
  CHECK(names(at(2, 0.5)) == "2F0 2RECV_F0 1SEND_F0 1F0 1RECV_F0 0SEND_F0 0F0 ");
  CHECK(at(2, 0.5).cause == IdleCause::WarmUp);
  CHECK(at(2, 0.5).start == 0);
  CHECK(at(2, 0.5).end == Approx(2.5e-3));  // until 1F0 is over; then its data are in transfer
  CHECK(names(at(1, 1.2)) == "1F0 1RECV_F0 0SEND_F0 ");
  CHECK(at(1, 1.2).cause == IdleCause::Transfer);
  CHECK(names(at(0, 0.5)) == "0F0 ");
  CHECK_FALSE(at(0, 0.5).cause.has_value());
  CHECK(at(0, 0.5).end == Approx(1e-3));
}

TEST_CASE("The slowest layer of the stage that computes is named", "[sim][why_idle]") {
  const Structure structure(lower(make("1f1b", 3, 3)));
  Simulator simulator(structure);
  const Times& times = simulator.run(costs_of(3, 0.5e-3));
  LayerCosts layers;
  for (int layer = 0; layer < 6; ++layer) {
    LayerCost cost;
    cost.name = fmt::format("block{}", layer);
    cost.forward = {layer == 1 ? 0.8e-3 : 0.2e-3};
    layers.layers.push_back(cost);
  }
  const Partition partition{{0, 2, 4, 6}};
  CHECK(why_idle(structure, times, 1, 0.5e-3, {&layers, &partition}).sentence ==
        "rank 1 is idle from 0 ms to 1.500 ms: 1F0 waits for data from rank 0, which runs 0F0 "
        "from 0 ms to 1.000 ms; the slowest of the 2 layers of stage 0 is 1 (block1), with "
        "800.0 µs of 1.000 ms");
  const Partition single{{0, 1, 2, 6}};
  CHECK(why_idle(structure, times, 1, 0.5e-3, {&layers, &single}).sentence ==
        why_idle(structure, times, 1, 0.5e-3).sentence);
}

TEST_CASE("Measured: an action that nothing delayed is reported as started late",
          "[sim][why_idle]") {
  const Structure structure(lower(make("1f1b", 2, 2)));
  Simulator simulator(structure);
  Times times = simulator.run(costs_of(2, 0.5e-3));
  int late = -1;
  for (int event = 0; event < structure.size(); ++event)
    if (to_string(*structure.events()[event].instruction) == "1F0")
      late = event;
  // Starting with 1F0, everything happened 2 ms later than possible.
  const double from = times[late].start;
  for (EventTimes& event : times.events)
    if (event.start >= from)
      event = {event.start + 2e-3, event.released + 2e-3, event.end + 2e-3};
  times.iteration += 2e-3;
  const Times measured = times_of(structure, timeline_of(structure, times));
  const WhyIdle found = why_idle(structure, measured, 1, from + 1e-3);
  CHECK(found.sentence ==
        "rank 1 is idle from 0 ms to 3.500 ms: 1F0 waits for nothing: all its inputs were "
        "there at 1.500 ms, 2.000 ms before it began");
  CHECK(found.cause == IdleCause::Launch);
  CHECK(found.start == Approx(from));
  CHECK(found.end == Approx(from + 2e-3));
}

TEST_CASE("Every idle instant of every schedule has a sentence and the cause of its interval",
          "[sim][why_idle]") {
  std::mt19937 random(8);
  const int structures = for_each_structure([&](const Structure& structure) {
    Simulator simulator(structure);
    const Times& times = simulator.run(random_costs(structure.program(), random, 0));
    const IdleTime idle = IdleCauses(structure).of(times);
    for (std::size_t i = 0; i < idle.spans.size(); i += 1 + idle.spans.size() / 3) {
      const IdleSpan& span = idle.spans[i];
      const double middle = (span.start.value + span.end.value) / 2;
      const WhyIdle found = why_idle(structure, times, span.rank, middle);
      REQUIRE(found.cause == span.cause);
      REQUIRE(found.start == span.start.value);
      REQUIRE(found.sentence.find(" is idle from ") != std::string::npos);
      REQUIRE(found.sentence.find("waits for nothing") == std::string::npos);
    }
  });
  CHECK(structures > 500);
}

TEST_CASE("Measured: exactly the actions that started late wait for nothing", "[sim][why_idle]") {
  std::mt19937 random(9);
  int late = 0;
  for_each_structure([&](const Structure& structure) {
    Simulator simulator(structure);
    Times times = simulator.run(random_costs(structure.program(), random, 0));
    for (int event = 0; event < structure.size(); ++event)
      if (is_compute(structure.events()[event].instruction->kind)) {
        EventTimes& at = times.events[static_cast<std::size_t>(event)];
        at.start += std::uniform_real_distribution(0.0, 0.5)(random) * (at.end - at.start);
      }
    const Times measured = times_of(structure, timeline_of(structure, times));
    const IdleTime idle = IdleCauses(structure).of(measured);
    for (std::size_t i = 0; i < idle.spans.size(); i += 1 + idle.spans.size() / 5) {
      const IdleSpan& span = idle.spans[i];
      if (span.end.value - span.start.value < 1e-9)
        continue;  // an interval due to rounding has no middle
      const double middle = (span.start.value + span.end.value) / 2;
      const WhyIdle found = why_idle(structure, measured, span.rank, middle);
      CAPTURE(found.sentence, to_string(span.cause));
      REQUIRE(found.cause == span.cause);
      // The rank itself waits for nothing, not one that it waits for.
      const int next = found.chain.empty() ? 0 : found.chain[0];
      const bool waits_for_nothing =
          found.sentence.find("s: " + to_string(*structure.events()[next].instruction) +
                              " waits for nothing") != std::string::npos;
      REQUIRE(waits_for_nothing == (span.cause == IdleCause::Launch));
      late += waits_for_nothing ? 1 : 0;
    }
  });
  CHECK(late > 100);
}

TEST_CASE("A rank or a time that does not exist is rejected", "[sim][why_idle]") {
  const Structure structure(lower(make("1f1b", 2, 2)));
  Simulator simulator(structure);
  const Times& times = simulator.run(costs_of(2, 0));
  CHECK(error_of([&] { why_idle(structure, times, 2, 0); }) ==
        "there is no rank 2: the program has ranks 0 to 1");
  CHECK(error_of([&] { why_idle(structure, times, 0, 1); }) ==
        "1.000 s lies outside the iteration, which lasts 6.000 ms");
}

}  // namespace why_idle_test
