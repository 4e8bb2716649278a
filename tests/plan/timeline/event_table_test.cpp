#include "pipewright/plan/timeline/event_table.hpp"

#include <algorithm>

#include "support/catch.hpp"

namespace pipewright::plan::event_table_test {

Timeline two_ranks() {
  return {.name = "predicted",
          .ranks = 2,
          .length = {5},
          .spans = {{1, Row::Compute, "1F0", {1}, {2}},
                    {0, Row::Compute, "0F0", {0}, {1}},
                    {0, Row::Send, "0SEND_F0", {1}, {3}},
                    {0, Row::Send, "0SEND_F1", {2}, {4}},  // overlaps the previous span
                    {0, Row::Compute, "0F1", {1}, {2}}},
          .memory = {{1, {0}, {7}}, {0, {0}, {3}}, {0, {2}, {5}}},
          .idle = {{1, IdleCause::WarmUp, {0}, {1}}},
          .critical = {1, 2}};
}

TEST_CASE("Event table: spans are stored in columns by rank, row and time", "[plan][timeline]") {
  std::vector<std::uint64_t> places;
  const EventTable table = table_of(two_ranks(), &places);
  CHECK(table.size() == 5);
  CHECK(places == std::vector<std::uint64_t>{4, 0, 2, 3, 1});
  CHECK(table.name_at(1) == "0F1");
  CHECK(table.critical[1] == 2);
  CHECK(table.memory[table.memory_begins[1]].bytes == 7);
  CHECK(rank_name(table, 1) == "rank 1");
}

TEST_CASE("Event table: overlapping spans get separate tracks", "[plan][timeline]") {
  const EventTable table = table_of(two_ranks());
  REQUIRE(table.tracks.size() == 4);
  CHECK(table.tracks[1] == EventTrack{0, Row::Send, "send", 2, 3});
  CHECK(table.tracks[2] == EventTrack{0, Row::Send, "send", 3, 4});
  for (const EventTrack& track : table.tracks)
    for (std::uint64_t event = track.begin + 1; event < track.end; ++event)
      CHECK(table.end[event - 1] <= table.start[event]);
}

TEST_CASE("Event table: idle time is sorted by rank and time", "[plan][timeline]") {
  Timeline timeline = two_ranks();
  timeline.idle = {{1, IdleCause::WarmUp, {2}, {3}},
                   {1, IdleCause::Queue, {0}, {1}},
                   {0, IdleCause::Launch, {4}, {5}}};
  const EventTable table = table_of(timeline);
  REQUIRE(table.idle.size() == 3);
  CHECK(table.idle[0].rank == 0);
  CHECK(table.idle[1].start == 0);
}

TEST_CASE("Event table: nothing is lost in a round trip", "[plan][timeline]") {
  std::vector<std::uint64_t> places;
  Timeline expected = two_ranks();
  const Timeline back = timeline_of(table_of(expected, &places));
  std::vector<Span> spans(expected.spans.size());
  for (std::size_t span = 0; span < spans.size(); ++span)
    spans[places[span]] = expected.spans[span];
  expected.spans = spans;
  expected.critical = {places[1], places[2]};
  std::stable_sort(expected.memory.begin(), expected.memory.end(),
                   [](const auto& a, const auto& b) { return a.rank < b.rank; });
  CHECK(back == expected);
  CHECK(timeline_of(table_of(Timeline{"empty", 3, {1}, {}, {}})).ranks == 3);
}

}  // namespace pipewright::plan::event_table_test
