#include "pipewright/plan/timeline/aligned_timeline.hpp"

#include <fmt/format.h>

#include "pipewright/plan/timeline/timeline_transfers.hpp"
#include "support/catch.hpp"

namespace aligned_timeline_test {

using namespace pipewright::plan;

/// Two ranks with true times: rank 0 computes, sends, and receives the gradient at 8.
Timeline two_ranks() {
  return {.name = "measured",
          .ranks = 2,
          .length = {9},
          .spans = {{0, Row::Compute, "0F0", {1}, {2}},
                    {0, Row::Send, "0SEND_F0", {2}, {2.5}},
                    {0, Row::Receive, "0RECV_B0", {2.5}, {8}},
                    {1, Row::Receive, "1RECV_F0", {1}, {3}},
                    {1, Row::Compute, "1F0", {3}, {6}},
                    {1, Row::Send, "1SEND_B0", {7}, {7.5}}},
          .memory = {{0, {2}, {70}}, {1, {6}, {50}}},
          .idle = {{1, IdleCause::WarmUp, {1}, {3}}}};
}

/// Returns the timeline as measured with the clock of rank 1 this far ahead.
Timeline read_with(Timeline timeline, Seconds ahead) {
  for (Span& span : timeline.spans)
    if (span.rank == 1) {
      span.start += ahead;
      span.end += ahead;
    }
  timeline.memory[1].time += ahead;
  timeline.idle[0].start += ahead;
  timeline.idle[0].end += ahead;
  return timeline;
}

Timeline put_right(const Timeline& timeline) {
  return aligned(timeline, clock_offsets(timeline.ranks, passages_of(timeline)));
}

std::string text_of(const std::vector<ClockObservation>& passages) {
  std::string text;
  for (const auto& [from, to, sent, arrived] : passages)
    text += fmt::format("{}:{} > {}:{}\n", from, sent.value, to, arrived.value);
  return text;
}

TEST_CASE("A transfer is a passage from the start of the send to the end of the receive",
          "[plan][clock]") {
  CHECK(text_of(passages_of(two_ranks())) ==
        "0:2 > 1:3\n"
        "1:7 > 0:8\n");
}

TEST_CASE("A reduction is a passage from each member's start to every other's end",
          "[plan][clock]") {
  const Timeline timeline{.name = "measured",
                          .ranks = 3,
                          .length = {9},
                          .spans = {{0, Row::Reduce, "0REDUCE_GRAD", {1}, {4}},
                                    {0, Row::Reduce, "0REDUCE_GRAD", {5}, {8}},
                                    {2, Row::Reduce, "0REDUCE_GRAD", {2}, {3}},
                                    {2, Row::Reduce, "0REDUCE_GRAD", {6}, {7}},
                                    {1, Row::Reduce, "1REDUCE_GRAD", {0}, {9}}},
                          .memory = {}};
  CHECK(text_of(passages_of(timeline)) ==
        "0:1 > 2:3\n"
        "2:2 > 0:4\n"
        "0:5 > 2:7\n"
        "2:6 > 0:8\n");
}

TEST_CASE("A timeline measured with two clocks is aligned", "[plan][clock]") {
  for (const double ahead : {0.0, 1000.0, 0.25})
    CHECK(put_right(read_with(two_ranks(), {ahead})) == two_ranks());
}

TEST_CASE("A rank that begins before the first rank's clock shifts all times", "[plan][clock]") {
  Timeline early = two_ranks();
  early.spans[3].start = {-2};  // posted before rank 0's clock started
  const Timeline right = put_right(read_with(early, {1000}));
  CHECK(right.spans[3].start == Seconds{0});
  CHECK(right.spans[0].start == Seconds{3});
  CHECK(right.memory[1].time == Seconds{8});
  CHECK(right.idle[0].start == Seconds{3});
  CHECK(right.length == Seconds{11});
}

TEST_CASE("A timeline is as long as its last span", "[plan][clock]") {
  Timeline late = two_ranks();
  late.spans.push_back({1, Row::Compute, "1STEP", {9}, {12}});
  CHECK(put_right(read_with(late, {-1})).length == Seconds{12});
}

TEST_CASE("After alignment, an apparently long transfer turns out to be waiting", "[plan][clock]") {
  const auto waiting = [](const Timeline& timeline) {
    return split_transfers(timeline).front().waiting;
  };
  CHECK(waiting(read_with(two_ranks(), {-1000})) == Seconds{2});  // all waiting, no transfer
  CHECK(waiting(put_right(read_with(two_ranks(), {-1000}))) == Seconds{1});
}

}  // namespace aligned_timeline_test
