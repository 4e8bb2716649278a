#include "pipewright/plan/timeline/timeline_transfers.hpp"

#include <fmt/format.h>

#include "support/catch.hpp"

namespace timeline_transfers_test {

using namespace pipewright::plan;

Timeline timeline_of(std::vector<Span> spans) {
  return {.name = "measured", .ranks = 4, .length = {9}, .spans = std::move(spans), .memory = {}};
}

/// Returns "0>1" for a transfer from span 0 to span 1.
std::string ends_of(const Timeline& timeline) {
  std::string text;
  for (const auto& [send, receive] : transfers_of(timeline))
    text += fmt::format("{}>{} ", send, receive);
  return text;
}

/// Splits a receive of rank 1 from `reached` to `there`, whose data rank 0 sends from `began` on.
TransferSplit split_of(Seconds reached, Seconds there, Seconds began) {
  return split_transfers(timeline_of({{1, Row::Receive, "1RECV_F2", reached, there},
                                      {0, Row::Send, "0SEND_F2", began, began}}))
      .at(0);
}

TEST_CASE("A send is paired with the receive of the same data", "[plan][transfers]") {
  CHECK(ends_of(timeline_of({{0, Row::Compute, "0F0", {0}, {1}},
                             {0, Row::Send, "0SEND_F0", {1}, {2}},
                             {0, Row::Receive, "0RECV_B0", {2}, {4}},
                             {1, Row::Receive, "1RECV_F0", {0}, {2}},
                             {1, Row::Send, "1SEND_B0", {3}, {4}}})) == "1>3 4>2 ");
}

TEST_CASE("With replicas, the first send is paired with the first receive", "[plan][transfers]") {
  CHECK(ends_of(timeline_of({{0, Row::Send, "0SEND_F0", {1}, {2}},
                             {1, Row::Send, "0SEND_F0", {1}, {2}},
                             {2, Row::Receive, "1RECV_F0", {1}, {2}},
                             {3, Row::Receive, "1RECV_F0", {1}, {2}}})) == "0>2 1>3 ");
}

TEST_CASE("Spans without another end, and spans that are not transfers, are not paired",
          "[plan][transfers]") {
  CHECK(ends_of(timeline_of({{0, Row::Send, "0SEND_F0", {1}, {2}},
                             {0, Row::Send, "0SEND_F1", {1}, {2}},
                             {1, Row::Receive, "1RECV_F1", {1}, {2}},
                             {1, Row::Receive, "1RECV_F3", {1}, {2}},
                             {0, Row::Send, "mail", {1}, {2}},
                             {1, Row::Receive, "", {1}, {2}}})) == "1>2 ");
}

TEST_CASE("A receive waits until its send begins; after that, data are in transfer",
          "[plan][transfers]") {
  CHECK(split_of({1}, {6}, {4}) == TransferSplit{1, "1RECV_F2", {3}, {2}});
}

TEST_CASE("A receive that begins after its send does not wait", "[plan][transfers]") {
  CHECK(split_of({4}, {6}, {1}) == TransferSplit{1, "1RECV_F2", {0}, {2}});
  CHECK(split_of({4}, {4}, {1}) == TransferSplit{1, "1RECV_F2", {0}, {0}});
}

TEST_CASE("A receive that ends before its send, due to clock errors, only waited",
          "[plan][transfers]") {
  CHECK(split_of({1}, {3}, {4}) == TransferSplit{1, "1RECV_F2", {2}, {0}});
  CHECK(split_of({3}, {1}, {4}) == TransferSplit{1, "1RECV_F2", {0}, {0}});
}

}  // namespace timeline_transfers_test
