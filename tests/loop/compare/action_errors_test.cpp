#include "pipewright/loop/compare/action_errors.hpp"

#include <cmath>

#include "support/catch.hpp"

namespace comparison_test {

using namespace pipewright::plan;
using namespace pipewright::loop;

StepFigures predicted() {
  return {.iteration = {0.012},
          .busy = {{0.009}, {0.009}},
          .bubble = {{0.003}, {0.003}},
          .peak = {{2'500'000}, {1'250'000}}};
}

StepFigures measured() {
  return {.iteration = {0.0125},
          .busy = {{0.009}, {0.010}},
          .bubble = {{0.0035}, {0.0025}},
          .peak = {{2'000'000}, {0}}};
}

TEST_CASE("The figures of a timeline are its length, busy, bubble and peak", "[plan][comparison]") {
  const Timeline timeline{.name = "measured",
                          .ranks = 2,
                          .length = {5},
                          .spans = {{0, Row::Compute, "0F0", {0}, {2}, {0.5}},
                                    {0, Row::Send, "0SEND_F0", {2}, {3}},
                                    {1, Row::Compute, "1F0", {3}, {4}}},
                          .memory = {{0, {0}, {70}}}};
  const StepFigures figures = figures_of(timeline);
  CHECK(figures.iteration == Seconds{5});
  CHECK(figures.busy == std::vector<Seconds>{{2}, {1}});
  CHECK(figures.bubble == std::vector<Seconds>{{3}, {4}});
  CHECK(figures.peak == std::vector<Bytes>{{70}, {0}});
  CHECK(figures.shards == std::vector<Seconds>{{0.5}, {0}});
}

TEST_CASE("An error is relative to the measured value", "[plan][comparison]") {
  CHECK(error_percent(3, 2) == 50);
  CHECK(error_percent(1, 2) == -50);
  CHECK(error_percent(0, 2) == -100);
  CHECK(error_percent(0, 0) == 0);
  CHECK(std::isnan(error_percent(1, 0)));
}

TEST_CASE("Figures as JSON are lists by rank, with bytes as integers", "[plan][comparison]") {
  StepFigures figures = predicted();
  figures.peak[0] = {9'007'199'254'740'993};
  CHECK(to_json(figures).dump() ==
        R"({"iteration_s":0.012,"busy_s":[0.009,0.009],"bubble_s":[0.003,0.003],)"
        R"("peak_bytes":[9007199254740993,1250000]})");
}

TEST_CASE("Errors as JSON are null if they are undefined", "[plan][comparison]") {
  const StepFigures one{.iteration = {3}, .busy = {{1}, {2}}, .bubble = {{0}}, .peak = {{5}}};
  const StepFigures other{.iteration = {2}, .busy = {{2}}, .bubble = {{0}}, .peak = {{0}}};
  CHECK(error_json(one, other).dump() ==
        R"({"iteration_s":50.0,"busy_s":[-50.0,null],"bubble_s":[0.0],"peak_bytes":[null]})");
}

TEST_CASE("A rank without memory samples has no error of its peak", "[plan][comparison]") {
  const auto with_peaks = [](std::vector<Bytes> peaks) {
    return StepFigures{.iteration = {1}, .busy = {}, .bubble = {}, .peak = std::move(peaks)};
  };
  const StepFigures some = with_peaks({{4}, {0}, {0}, {6}});
  CHECK(error_json(some, with_peaks({{0}, {2}, {0}, {4}}))["peak_bytes"].dump() ==
        "[null,null,null,50.0]");
  CHECK(error_json(some, with_peaks({}))["peak_bytes"].dump() == "[null,null,null,null]");
}

TEST_CASE("The table shows prediction, measurement and error next to each other",
          "[plan][comparison]") {
  CHECK(comparison_table(predicted(), measured()) ==
        "                    predicted   measured    error\n"
        "iteration time       12.00 ms   12.50 ms   -4.0 %\n"
        "rank 0 busy           9.00 ms    9.00 ms   +0.0 %\n"
        "rank 0 bubble         3.00 ms    3.50 ms  -14.3 %\n"
        "rank 0 peak memory   2.500 MB   2.000 MB  +25.0 %\n"
        "rank 1 busy           9.00 ms   10.00 ms  -10.0 %\n"
        "rank 1 bubble         3.00 ms    2.50 ms  +20.0 %\n"
        "rank 1 peak memory   1.250 MB          -        -\n");
}

TEST_CASE("With tensor parallelism the communication time is listed separately",
          "[plan][comparison]") {
  StepFigures expected = predicted(), found = measured();
  expected.shards = {{0.001}, {0.002}};
  found.shards = {{0.002}, {0.002}};
  CHECK(to_json(expected)["shards_s"].dump() == "[0.001,0.002]");
  CHECK(error_json(expected, found)["shards_s"].dump() == "[-50.0,0.0]");
  const std::string table = comparison_table(expected, found);
  CHECK(table.find("rank 0 busy           9.00 ms    9.00 ms   +0.0 %\n"
                   "rank 0 shards         1.00 ms    2.00 ms  -50.0 %\n"
                   "rank 0 bubble ") != std::string::npos);
  found.shards = expected.shards = {{0}, {0}};
  CHECK(comparison_table(expected, found) == comparison_table(predicted(), measured()));
  CHECK_FALSE(to_json(expected).contains("shards_s"));
}

TEST_CASE("The table shows a dash for a rank that only one timeline has", "[plan][comparison]") {
  const StepFigures one{.iteration = {0.012}, .busy = {{0.009}}, .bubble = {{0.003}}, .peak = {}};
  CHECK(comparison_table(predicted(), one) ==
        "                    predicted   measured   error\n"
        "iteration time       12.00 ms   12.00 ms  +0.0 %\n"
        "rank 0 busy           9.00 ms    9.00 ms  +0.0 %\n"
        "rank 0 bubble         3.00 ms    3.00 ms  +0.0 %\n"
        "rank 0 peak memory   2.500 MB          -       -\n"
        "rank 1 busy           9.00 ms          -       -\n"
        "rank 1 bubble         3.00 ms          -       -\n"
        "rank 1 peak memory   1.250 MB          -       -\n");
}

TEST_CASE("The table keeps four digits of long and of short times", "[plan][comparison]") {
  const StepFigures slow{.iteration = {12.3456}, .busy = {}, .bubble = {}, .peak = {}};
  CHECK(comparison_table(slow, slow) ==
        "                predicted   measured   error\n"
        "iteration time    12.35 s    12.35 s  +0.0 %\n");
  const StepFigures fast{.iteration = {0.00012345678}, .busy = {}, .bubble = {}, .peak = {}};
  CHECK(comparison_table(fast, fast) ==
        "                predicted   measured   error\n"
        "iteration time  0.1235 ms  0.1235 ms  +0.0 %\n");
}

}  // namespace comparison_test
