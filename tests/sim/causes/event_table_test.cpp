#include "pipewright/sim/causes/event_table.hpp"

#include <random>

#include "pipewright/sim/causes/critical_path.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/random_costs.hpp"
#include "sim/support/structures.hpp"

namespace event_table_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

/// Returns a prediction with these parts as a Timeline.
Timeline timeline_with(const Structure& structure, const Times& times,
                       const EventTableParts& parts) {
  Timeline timeline = timeline_of(structure, times);
  timeline.idle = parts.idle->spans;
  timeline.memory = samples_of(*parts.memory);
  timeline.critical.assign(parts.critical.begin(), parts.critical.end());
  return timeline;
}

TEST_CASE("A table of times equals that of its timeline", "[sim][timeline]") {
  std::mt19937 random(5);
  int overlapping = 0;
  const int structures = for_each_structure([&](const Structure& structure) {
    EventTableMaker maker(structure);
    Simulator simulator(structure);
    IdleCauses causes(structure);
    MemoryModel memory(structure);
    for (const int round : {0, 3}) {
      const StepCosts costs = random_costs(structure.program(), random, round);
      const Times& times = simulator.run(costs);
      const auto critical = critical_path(structure, times);
      const EventTableParts parts{&causes.of(times), &memory.curves(costs, times), critical};
      const EventTable found = maker.table_of(times, parts);

      std::vector<std::uint64_t> places;
      const EventTable expected = table_of(timeline_with(structure, times, parts), &places);
      REQUIRE(timeline_of(found) == timeline_of(expected));
      REQUIRE(found.tracks == expected.tracks);
      REQUIRE(maker.places() == places);
      REQUIRE(found.names.size() == expected.names.size());
      overlapping += found.tracks.size() > structure.program().ranks.size() * 4 ? 1 : 0;
    }
  });
  CHECK(structures > 500);
  CHECK(overlapping > 0);  // otherwise several tracks of one row are not tested
}

TEST_CASE("A table outlives the next one and its maker", "[sim][timeline]") {
  const Structure structure(lower(make("1f1b", 2, 3)));
  std::mt19937 random(6);
  const StepCosts costs = random_costs(structure.program(), random, 0);
  Simulator simulator(structure);
  const Times first = simulator.run(costs);
  auto maker = std::make_unique<EventTableMaker>(structure);
  const EventTable table = maker->table_of(first);
  Times later = first;
  for (EventTimes& event : later.events)
    event = {event.start + 1, event.released + 1, event.end + 1};
  maker->table_of(later);
  maker.reset();
  CHECK(timeline_of(table) == timeline_of(table_of(timeline_of(structure, first))));
  CHECK(table.idle.empty());
  CHECK(table.memory.empty());
}

}  // namespace event_table_test
