#include "pipewright/loop/compare/kind_comparison.hpp"

#include "support/catch.hpp"

namespace kind_comparison_test {

using namespace pipewright::plan;
using namespace pipewright::loop;

Timeline timeline_of(std::vector<Span> spans) {
  return {.name = "step", .ranks = 2, .length = {1}, .spans = std::move(spans), .memory = {}};
}

/// Returns a timeline with one microbatch that goes forward through two ranks, with a split
/// backward on the second.
Timeline predicted() {
  return timeline_of({{0, Row::Compute, "0F0", {0}, {0.010}},
                      {0, Row::Send, "0SEND_F0", {0.010}, {0.012}},
                      {1, Row::Receive, "1RECV_F0", {0}, {0.0125}},
                      {1, Row::Compute, "1F0", {0.012}, {0.026}},
                      {1, Row::Compute, "1I0", {0.026}, {0.037}},
                      {1, Row::Compute, "1W0", {0.037}, {0.0415}},
                      {0, Row::Reduce, "0REDUCE_GRAD", {0.042}, {0.0435}}});
}

/// Returns the same timeline with a full backward, slower forwards, and without a reduction.
Timeline measured() {
  return timeline_of({{0, Row::Compute, "0F0", {0}, {0.012}},
                      {0, Row::Send, "0SEND_F0", {0.012}, {0.0123}},
                      {1, Row::Receive, "1RECV_F0", {0}, {0.0123}},
                      {1, Row::Compute, "1F0", {0.012}, {0.028}},
                      {1, Row::Compute, "1F1", {0.028}, {0.048}},
                      {1, Row::Compute, "1B0", {0.048}, {0.06}}});
}

TEST_CASE("Times of a kind are counted and summed over all ranks", "[plan][comparison]") {
  const KindTimes times = time_per_kind(predicted());
  CHECK(times.at("F").count == 2);
  CHECK(times.at("F").total.value == Approx(0.024));
  CHECK(times.at("F").mean().value == Approx(0.012));
  CHECK(times.at("RECV_F waiting").mean().value == Approx(0.010));
  CHECK(times.at("RECV_F moving").mean().value == Approx(0.0025));
  CHECK(times.at("REDUCE_GRAD").count == 1);
  CHECK(times.count("SEND_F") == 0);
}

TEST_CASE("A clock that stepped back subtracts no time", "[plan][comparison]") {
  const auto times = time_per_kind(
      timeline_of({{0, Row::Compute, "0F0", {2}, {1}}, {0, Row::Compute, "0F1", {2}, {3}}}));
  CHECK(times.at("F").total == Seconds{1});
}

TEST_CASE("The table has a dash for a missing kind, and both counts if they differ",
          "[plan][comparison]") {
  CHECK(kind_table(time_per_kind(predicted()), time_per_kind(measured())) ==
        "mean of         count  predicted   measured     error\n"
        "B               - / 1          -   12.00 ms         -\n"
        "F               2 / 3   12.00 ms   16.00 ms   -25.0 %\n"
        "I               1 / -   11.00 ms          -         -\n"
        "RECV_F moving       1   2.500 ms   0.300 ms  +733.3 %\n"
        "RECV_F waiting      1   10.00 ms   12.00 ms   -16.7 %\n"
        "REDUCE_GRAD     1 / -   1.500 ms          -         -\n"
        "W               1 / -   4.500 ms          -         -\n");
}

TEST_CASE("As JSON a kind has null for missing values", "[plan][comparison]") {
  const KindTimes both{{"F", {2, {0.5}}}}, one{{"F", {1, {0.5}}}, {"B", {4, {1}}}};
  CHECK(kinds_json(both, one).dump() ==
        R"({"B":{"predicted_count":null,"measured_count":4,"predicted_s":null,"measured_s":0.25,)"
        R"("error_percent":null},)"
        R"("F":{"predicted_count":2,"measured_count":1,"predicted_s":0.25,"measured_s":0.5,)"
        R"("error_percent":-50.0}})");
}

TEST_CASE("The error of a kind that took no time is undefined", "[plan][comparison]") {
  const KindTimes some{{"RECV_F moving", {1, {1}}}}, none{{"RECV_F moving", {1, {0}}}};
  CHECK(kinds_json(some, none)["RECV_F moving"]["error_percent"].is_null());
  CHECK(kinds_json(none, none)["RECV_F moving"]["error_percent"] == 0);
}

}  // namespace kind_comparison_test
