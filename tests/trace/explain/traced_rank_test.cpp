#include "pipewright/trace/explain/traced_rank.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace pipewright::trace::traced_rank_test {

using test::error_of;
using Events = PipelineEvents;

Events::Range range(RangeKind kind, const std::string& name, double start, double end,
                    const std::string& stream = "") {
  return {kind, start, end, name, stream};
}

Events::Operator call(OperatorKind kind, double start, double end) { return {start, end, kind, 0}; }

/// Returns "0F0 1-2, …", with transfers after a bar.
std::string shown(const TracedStep& step) {
  std::string text;
  for (const TracedAction& own : step.actions)
    text += fmt::format("{} {:g}-{:g} ", to_string(own.action), own.start, own.end);
  text += "|";
  for (const TracedTransfer& own : step.transfers)
    text += fmt::format(" {} {:g}-{:g}", to_string(own.instruction), own.start, own.end);
  return text;
}

std::string shown(const Events& events) {
  const TracedRank rank = traced_rank(events);
  REQUIRE(rank.steps.size() == 1);
  return shown(rank.steps.front());
}

constexpr auto compute = OperatorKind::Compute;
constexpr auto engine = OperatorKind::Engine;
constexpr auto send = OperatorKind::Send;
constexpr auto receive = OperatorKind::Receive;

TEST_CASE("An action begins when it no longer waits for its input", "[loop][explain]") {
  const Events events{
      .names = {"op"},
      .ranges = {range(RangeKind::Action, "1RECV_F0", 0, 1),
                 range(RangeKind::Receive, "", 0.5, 6),     // waited for within the forward
                 range(RangeKind::Action, "1F0", 2, 9),     // likewise
                 range(RangeKind::Receive, "", 8, 11),      // of the backward, begun meanwhile
                 range(RangeKind::Action, "1I0", 10, 12)},  // has no compute operators
      .operators = {call(receive, 0.5, 0.7), call(compute, 6.5, 8)},
      .arrows = {{6.6, 20}}};
  CHECK(shown(events) == "1F0 6-9 1I0 11-12 | 1RECV_F0 0-1");
}

TEST_CASE("The backward of a fused pair begins where the autograd engine does", "[loop][explain]") {
  const Events events{.names = {"op"},
                      .ranges = {range(RangeKind::Action, "(1F2;1B0)OVERLAP_F_B", 0, 10)},
                      .operators = {call(compute, 1, 4), call(engine, 5, 9)},
                      .arrows = {{2, 20}}};
  CHECK(shown(events) == "1F2 0-5 1B0 5-10 |");
  CHECK(traced_rank(events).steps.front().actions.front().action.fused_with_next);
}

TEST_CASE("GPipe's ranges contain transfers, and the loss follows the forward's range",
          "[loop][explain]") {
  const Events events{
      .names = {"op"},
      .ranges = {range(RangeKind::Forward, "0", 0, 5), range(RangeKind::Receive, "", 0.2, 2),
                 range(RangeKind::Backward, "0", 10, 16), range(RangeKind::Send, "", 15.2, 30)},
      .operators = {call(receive, 0.1, 0.3), call(compute, 2, 4), call(compute, 6, 7),
                    call(engine, 11, 14), call(send, 15, 15.5)},
      .arrows = {{3, 12}, {6.5, 11.5}}};
  CHECK(shown(events) ==
        "-1F0 2-7 -1B0 10-15 |"
        " -1RECV_F0 0.1-2 -1SEND_B0 15-30");
}

TEST_CASE("Recomputation in a backward is not a forward", "[loop][explain]") {
  const Events events{.names = {"op"},
                      .ranges = {},
                      .operators = {call(compute, 0, 2), call(send, 2, 2.5), call(receive, 3, 3.5),
                                    call(engine, 4, 9)},
                      .arrows = {{1, 8}, {5, 7}}};  // the second begins within the engine's
                                                    // operator
  const TracedRank rank = traced_rank(events);
  CHECK(rank.source == ActionSource::Operators);
  REQUIRE(rank.steps.size() == 1);
  CHECK(rank.steps[0].actions.size() == 2);
  CHECK(rank.steps[0].microbatches == 1);
}

TEST_CASE("Two tensors of an action are one transfer", "[loop][explain]") {
  const Events events{
      .names = {"op"},
      .ranges = {},
      .operators = {call(receive, 0, 0.5), call(receive, 0.6, 0.9), call(compute, 1, 2),
                    call(engine, 4, 9), call(send, 9.1, 9.2), call(send, 9.3, 9.5)},
      .arrows = {{1.5, 8}}};
  const TracedStep step = traced_rank(events).steps.front();
  REQUIRE(step.transfers.size() == 2);
  CHECK(step.transfers[0].end == 0.9);
  CHECK(step.transfers[1].end == 9.5);
}

TEST_CASE("The times of a device replace those of the host", "[loop][explain]") {
  Events events{
      .names = {"op"},
      .ranges = {range(RangeKind::Action, "0F0", 0, 2), range(RangeKind::Action, "0B0", 2, 4)},
      .operators = {},
      .arrows = {},
      .device = {{0.5, 3, 6}, {1, 6, 10}, {2.5, 10, 12}, {3.5, 12, 25}}};
  CHECK(shown(events) == "0F0 3-10 0B0 10-25 |");
  CHECK(traced_rank(events).on_device);
  // Without arrows from launches to kernels, a range's device counterpart gives the same result.
  events.device.clear();
  events.ranges.push_back(range(RangeKind::Action, "0F0", 3, 10, "stream 7"));
  events.ranges.push_back(range(RangeKind::Action, "0F0", 4, 5, "stream 9"));
  events.ranges.push_back(range(RangeKind::Action, "0B0", 10, 25, "stream 7"));
  CHECK(shown(events) == "0F0 3-10 0B0 10-25 |");
}

TEST_CASE("Actions are found by the functions that run a microbatch if stacks were recorded",
          "[loop][explain]") {
  Events events{
      .names = {"op"},
      .ranges = {range(RangeKind::ForwardCall, "", 0, 4), range(RangeKind::ForwardCall, "", 5, 8),
                 range(RangeKind::BackwardCall, "", 10, 12),
                 range(RangeKind::BackwardCall, "", 13, 16)},
      .operators = {call(compute, 1, 4), call(send, 4.1, 4.2), call(send, 8.1, 8.3),
                    call(receive, 9, 9.5), call(engine, 10, 12)},
      .arrows = {{2, 11}}};
  CHECK(shown(events) ==
        "-1F0 0-4 -1F1 5-8 -1B0 10-12 -1B1 13-16 |"
        " -1SEND_F0 4.1-4.2 -1SEND_F1 8.1-8.3 -1RECV_B0 9-9.5");
  events.interleaves = true;
  CHECK(error_of([&] { traced_rank(events); }).find("several stages each") != std::string::npos);
}

TEST_CASE("Several stages of a rank cannot be distinguished by operators", "[loop][explain]") {
  // Two consecutive forwards, and their backwards in the same order: the second forward's backward
  // is within the first's.
  const Events events{
      .file = "r.json",
      .names = {"op"},
      .ranges = {range(RangeKind::Step, "3", 0, 40)},
      .operators = {call(compute, 0, 1), call(compute, 1, 2), call(compute, 2, 3), call(send, 4, 5),
                    call(engine, 6, 7), call(receive, 8, 9), call(engine, 10, 11)},
      .arrows = {{0.5, 6.5}, {1.5, 10.5}, {2.5, 6.6}}};
  CHECK(error_of([&] {
          traced_rank(events);
        }).starts_with("r.json: the forward operators of ProfilerStep#3 do not fall into"));
}

}  // namespace pipewright::trace::traced_rank_test
