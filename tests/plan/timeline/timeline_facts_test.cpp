#include "pipewright/plan/timeline/timeline_facts.hpp"

#include "support/catch.hpp"

namespace pipewright::plan::timeline_facts_test {

/// Returns a table with a track of step marks and a track of other events.
EventTable marked(const std::vector<Span>& marks) {
  EventTable table =
      table_of({.name = "t", .ranks = 2, .length = {20}, .spans = marks, .memory = {}});
  for (EventTrack& track : table.tracks)
    track.name = steps_track;
  return table;
}

TEST_CASE("Marks of steps have a number at their end", "[plan][timeline]") {
  CHECK(step_number("ProfilerStep#12") == 12);
  CHECK(step_number("step 23") == 23);
  CHECK(step_number("iteration 0") == 0);
  for (const char* name : {"", "step", "step ", "step x", "step 1 of 2", "ProfilerStep#", "steps 3",
                           "step -1", "Optimizer.step#Adam.step", "step 99999999999999999999"}) {
    INFO(name);
    CHECK(!step_number(name));
  }
}

TEST_CASE("A step lasts from the first rank's begin to the last rank's end", "[plan][timeline]") {
  const EventTable table = marked({{0, Row::Compute, "step 8", {0}, {4}},
                                   {0, Row::Compute, "step 7", {10}, {12}},
                                   {1, Row::Compute, "step 8", {1}, {5}},
                                   {1, Row::Compute, "no step", {6}, {7}}});
  const TimelineFacts facts = facts_of(table);
  CHECK(!facts.is_iteration);
  REQUIRE(facts.steps.size() == 2);
  CHECK(facts.steps[0].number == 8);
  CHECK(facts.steps[0].start == Seconds{0});
  CHECK(facts.steps[0].end == Seconds{5});
  CHECK(facts.steps[1].number == 7);
}

TEST_CASE("The typical step is the one of median length", "[plan][timeline]") {
  const TimelineFacts facts = facts_of(marked({{0, Row::Compute, "step 1", {0}, {9}},
                                               {0, Row::Compute, "step 2", {9}, {11}},
                                               {0, Row::Compute, "step 3", {11}, {14}}}));
  REQUIRE(facts.typical_step() != nullptr);
  CHECK(facts.typical_step()->number == 3);
}

TEST_CASE("Only our own timelines are iterations", "[plan][timeline]") {
  EventTable table = table_of({.name = "t",
                               .ranks = 1,
                               .length = {3},
                               .spans = {{0, Row::Compute, "0F0", {0}, {2}}},
                               .memory = {}});
  CHECK(facts_of(table).is_iteration);
  CHECK(iteration_of(table, facts_of(table)) == Seconds{3});
  EventTable with_thread = table, with_process = table, with_call = table;
  with_thread.tracks.front().name = "main loop";
  with_process.rank_names = {"trainer"};
  with_call.tracks.front().depth = 1;
  for (const EventTable* foreign : {&with_thread, &with_process, &with_call}) {
    CHECK(!facts_of(*foreign).is_iteration);
    CHECK(!iteration_of(*foreign, facts_of(*foreign)));
  }
}

}  // namespace pipewright::plan::timeline_facts_test
