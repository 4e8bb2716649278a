#include "pipewright/plan/timeline/shard_waits.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/event_table.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace shard_waits_test {

using namespace pipewright::plan;

Span compute(int rank, const char* action, double start, double end, double shards, double late) {
  return {rank, Row::Compute, action, {start}, {end}, {shards}, {late}};
}

/// On rank 1, the actions of a fused pair take turns from 4 to 10 s.
Timeline two_ranks() {
  return {.name = "measured",
          .ranks = 2,
          .length = {12},
          .spans = {compute(0, "0F0", 0, 4, 2, 1),
                    compute(0, "0F1", 4, 6, 1, 0),
                    {0, Row::Send, "0SEND_F0", {4}, {5}},
                    compute(0, "0B0", 8, 12, 3, 2),
                    compute(1, "1F0", 0, 3, 1, 0.5),
                    compute(1, "1F1", 4, 9, 2, 1),
                    compute(1, "1B0", 5, 10, 2, 1.5)},
          .memory = {},
          .idle = {{0, IdleCause::Transfer, {6}, {8}},
                   {1, IdleCause::Transfer, {3}, {4}},
                   {1, IdleCause::CoolDown, {10}, {12}}}};
}

TEST_CASE("Shard waits are at the end of a span or of a fused pair", "[plan][timeline]") {
  CHECK(shard_waits(two_ranks()) == std::vector<IdleSpan>{{0, IdleCause::Shards, {3}, {4}},
                                                          {0, IdleCause::Shards, {10}, {12}},
                                                          {1, IdleCause::Shards, {2.5}, {3}},
                                                          {1, IdleCause::Shards, {7.5}, {10}}});
  CHECK(
      shard_waits({.name = "none", .ranks = 2, .length = {1}, .spans = {}, .memory = {}}).empty());
}

TEST_CASE("Shard waits never make a rank's time both busy and idle", "[plan][timeline]") {
  const Timeline timeline = with_shard_waits(two_ranks());
  CHECK(busy_per_rank(timeline) == std::vector<Seconds>{{7}, {6}});
  CHECK(shards_per_rank(timeline) == std::vector<Seconds>{{3}, {2}});
  const auto idle = idle_by_cause(timeline);
  for (const std::size_t rank : {std::size_t{0}, std::size_t{1}}) {
    Seconds all = busy_per_rank(timeline)[rank];
    for (const Seconds cause : idle[rank])
      all += cause;
    CHECK(all == timeline.length);
    CHECK(idle[rank][static_cast<std::size_t>(IdleCause::Shards)] == Seconds{3});
  }
  for (std::size_t i = 1; i < timeline.idle.size(); ++i)
    CHECK((timeline.idle[i - 1].rank < timeline.idle[i].rank ||
           timeline.idle[i - 1].end <= timeline.idle[i].start));
}

TEST_CASE("Shard waits end the displayed part of a span", "[plan][timeline]") {
  const Timeline timeline = with_shard_waits(two_ranks());
  const WorkEnds ends(timeline.idle, timeline.ranks);
  CHECK(ends.of(0, {0}, {4}) == Seconds{3});
  CHECK(ends.of(0, {4}, {6}) == Seconds{6});
  CHECK(ends.of(1, {4}, {9}) == Seconds{7.5});
  CHECK(ends.of(1, {5}, {10}) == Seconds{7.5});
  CHECK(ends.of(1, {8}, {9}) == Seconds{8});  // the whole span
}

TEST_CASE("Shard waits are kept in a trace, and in a table as idle time", "[plan][timeline]") {
  const Timeline timeline = with_shard_waits(two_ranks());
  const Timeline back = timeline_from_trace(JsonDocument::parse(to_trace(timeline), "trace.json"));
  CHECK(back.spans == timeline.spans);
  CHECK(back.idle == timeline.idle);
  const Timeline of_table = timeline_of(table_of(timeline));
  CHECK(busy_per_rank(of_table) == busy_per_rank(timeline));
  CHECK(of_table.idle == timeline.idle);
  std::string text = to_trace(timeline);
  text.replace(text.find("\"late_s\":1"), 10, "\"late_s\":3");
  CHECK(pipewright::test::error_of([&] {
          timeline_from_trace(JsonDocument::parse(text, "trace.json"));
        }).find("it is a part of shards_s of the span 0F0, and longer than that") !=
        std::string::npos);
}

}  // namespace shard_waits_test
