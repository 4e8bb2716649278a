#include "pipewright/gui/timeline/painted_table.hpp"

#include <functional>
#include <optional>

#include "gui/support/tables.hpp"
#include "pipewright/gui/look/theme.hpp"
#include "pipewright/plan/timeline/shard_waits.hpp"
#include "support/catch.hpp"

namespace painted_table_test {

using namespace pipewright;
using Kind = plan::InstructionKind;
using gui::PaintedTable;

TEST_CASE("Each rank has its tracks, each event its track", "[gui][timeline]") {
  const PaintedTable painted(plan::table_of(test::small_pipeline()));
  const plan::EventTable& table = painted.table();
  REQUIRE(table.ranks == 4);
  std::size_t tracks = 0;
  for (int rank = 0; rank < table.ranks; ++rank) {
    const auto of = painted.tracks_of(rank);
    tracks += of.end - of.begin;
    for (std::size_t track = of.begin; track < of.end; ++track) {
      CHECK(table.tracks[track].rank == rank);
      CHECK(painted.sums(track).size() == table.tracks[track].end - table.tracks[track].begin);
      for (std::uint64_t event = table.tracks[track].begin; event < table.tracks[track].end;
           ++event)
        CHECK(painted.track_of(event) == track);
    }
  }
  CHECK(tracks == table.tracks.size());
}

TEST_CASE("Events and idle time at an instant are found", "[gui][timeline]") {
  const PaintedTable painted(plan::table_of(test::small_pipeline()));
  const plan::EventTable& table = painted.table();
  const std::size_t compute = painted.tracks_of(3).begin;
  // 0F0, 1F0 and 2F0 take 1 ms each and a transfer 0.2 ms: rank 3 begins at 3.6 ms.
  CHECK(!painted.event_at(compute, 3.5e-3));
  const auto idle = painted.idle_at(3, 3.5e-3);
  REQUIRE(idle);
  CHECK(table.idle[*idle].rank == 3);
  CHECK(static_cast<plan::IdleCause>(table.idle[*idle].cause) == plan::IdleCause::WarmUp);
  const auto event = painted.event_at(compute, 3.7e-3);
  REQUIRE(event);
  CHECK(table.name_at(*event) == "3F0");
  CHECK(!painted.idle_at(3, 3.7e-3));
}

TEST_CASE("Idle and busy time of a rank add up to the iteration", "[gui][timeline]") {
  const PaintedTable painted(plan::table_of(test::small_pipeline(1.5)));
  for (int rank = 0; rank < 4; ++rank) {
    double idle = 0;
    for (const double part : painted.idle(rank).between(0, painted.length()))
      idle += part;
    CHECK(idle + painted.busy(rank, 0, painted.length()) == Approx(painted.length()));
  }
}

TEST_CASE("A rank that waits for a tensor-parallel rank in an action is idle, and is shown as idle",
          "[gui][timeline]") {
  plan::Timeline timeline{.name = "waits",
                          .ranks = 2,
                          .length = {10},
                          .spans = {{0, plan::Row::Compute, "0F0", {0}, {6}, {3}, {2}},
                                    {1, plan::Row::Compute, "1F0", {0}, {6}, {3}, {1}},  // a pair
                                    {1, plan::Row::Compute, "1B0", {1}, {8}, {3}, {2}}},
                          .memory = {},
                          .idle = {{0, plan::IdleCause::CoolDown, {6}, {10}},
                                   {1, plan::IdleCause::CoolDown, {8}, {10}}}};
  const PaintedTable painted(plan::table_of(plan::with_shard_waits(std::move(timeline))));
  CHECK(painted.busy(0, 0, 10) == Approx(4));
  CHECK(painted.busy(1, 0, 10) == Approx(5));
  const std::size_t compute = painted.tracks_of(0).begin;
  CHECK(painted.event_at(compute, 3.5));
  CHECK(!painted.event_at(compute, 5));
  const auto wait = painted.idle_at(0, 5);
  REQUIRE(wait);
  CHECK(static_cast<plan::IdleCause>(painted.table().idle[*wait].cause) == plan::IdleCause::Shards);
}

TEST_CASE("Many events are summed the same by several threads as by one", "[gui][timeline]") {
  plan::Timeline timeline{
      .name = "many", .ranks = 8, .length = plan::Seconds{30'000}, .spans = {}, .memory = {}};
  for (int rank = 0; rank < 8; ++rank)
    for (int i = 0; i < 30'000; ++i)
      timeline.spans.push_back({rank, plan::Row::Compute, i % 3 == 0 ? "0F0" : "0B0",
                                plan::Seconds{i + 0.25}, plan::Seconds{i + 0.75}});
  const PaintedTable painted(plan::table_of(timeline));
  for (int rank = 0; rank < 8; ++rank) {
    CHECK(painted.busy(rank, 0, 30'000) == Approx(15'000));
    const auto sums = painted.sums(painted.tracks_of(rank).begin).between(0, 30'000);
    CHECK(sums[gui::kind_class(Kind::Forward)] == Approx(5'000));
    CHECK(sums[gui::kind_class(Kind::Backward)] == Approx(10'000));
  }
}

TEST_CASE("Classes can change their meaning, and become kinds again", "[gui][timeline]") {
  PaintedTable painted(plan::table_of(test::small_pipeline()));
  const auto class_of_first = [&] { return painted.sums(0).class_of(0); };
  CHECK(class_of_first() == gui::kind_class(Kind::Forward));
  painted.set_classes(std::vector<std::uint8_t>(painted.table().size(), 6));
  CHECK(class_of_first() == 6);
  painted.set_kinds();
  CHECK(class_of_first() == gui::kind_class(Kind::Forward));
}

TEST_CASE("The class of a name is that of its kind, whatever names precede it", "[gui][timeline]") {
  plan::Timeline timeline{
      .name = "names", .ranks = 1, .length = plan::Seconds{20}, .spans = {}, .memory = {}};
  const auto other = static_cast<std::uint8_t>(gui::class_count - 1);
  // Instructions, and texts that are almost one; no class: it depends on the name.
  const std::vector<std::pair<std::string, std::optional<std::uint8_t>>> names{
      {"0F0", gui::kind_class(Kind::Forward)},
      {"17F123", gui::kind_class(Kind::Forward)},
      {"3B1", gui::kind_class(Kind::Backward)},
      {"2STEP", gui::kind_class(Kind::OptimizerStep)},
      {"3STEP", gui::kind_class(Kind::OptimizerStep)},
      {"1SEND_F4", other},
      {"0F1#2", gui::kind_class(Kind::Forward)},
      {"1W0", gui::kind_class(Kind::WeightGradient)},
      {"2F99999999999999999999", {}},
      {"2STEP1", {}},
      {"2F", {}},
      {"F0", {}},
      {"42", {}},
      {"", {}}};
  double at = 0;
  for (const auto& [name, expected] : names) {
    timeline.spans.push_back(
        {0, plan::Row::Compute, name, plan::Seconds{at}, plan::Seconds{at + 1}});
    at += 1;
  }
  const PaintedTable painted(plan::table_of(timeline));
  for (std::uint64_t event = 0; event < names.size(); ++event) {
    CAPTURE(names[event].first);
    const std::uint8_t found = painted.sums(0).class_of(event);
    if (names[event].second)
      CHECK(found == *names[event].second);
    else
      CHECK(found == std::hash<std::string>{}(names[event].first) % gui::class_count);
  }
}

TEST_CASE("A table that contains kinds is painted by them, whatever its names", "[gui][timeline]") {
  plan::EventTable table = plan::table_of({.name = "renamed",
                                           .ranks = 1,
                                           .length = plan::Seconds{2},
                                           .spans = {{0, plan::Row::Compute, "first", {0}, {1}},
                                                     {0, plan::Row::Compute, "0F0", {1}, {2}}},
                                           .memory = {}});
  table.kinds = {Kind::OptimizerStep, Kind::Backward};
  const PaintedTable painted(std::move(table));
  CHECK(painted.sums(0).class_of(0) == gui::kind_class(Kind::OptimizerStep));
  CHECK(painted.sums(0).class_of(1) == gui::kind_class(Kind::Backward));
  CHECK(painted.has_kind(gui::kind_class(Kind::Backward)));
  CHECK_FALSE(painted.has_kind(gui::kind_class(Kind::Forward)));
}

TEST_CASE("A table without events, ranks or idle time is accepted", "[gui][timeline]") {
  const PaintedTable none{plan::EventTable{.name = "none", .ranks = 0, .length = {}}};
  CHECK(none.length() == 0);
  const PaintedTable idle_ranks{
      plan::EventTable{.name = "idle", .ranks = 3, .length = plan::Seconds{1}}};
  CHECK(idle_ranks.busy(2, 0, 1) == 0);
  CHECK(!idle_ranks.idle_at(2, 0.5));
}

}  // namespace painted_table_test
