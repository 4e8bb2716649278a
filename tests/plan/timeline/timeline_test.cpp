#include "pipewright/plan/timeline/timeline.hpp"

#include "support/catch.hpp"

namespace timeline_test {

using namespace pipewright::plan;

Span compute(int rank, const char* action, double start, double end) {
  return {rank, Row::Compute, action, {start}, {end}};
}

/// 1F1B over 2 ranks and 3 microbatches: a forward takes 1 s, a backward 2 s, and transfers take no
/// time.
Timeline one_f_one_b() {
  return {.name = "predicted",
          .ranks = 2,
          .length = {12},
          .spans = {compute(0, "0F0", 0, 1), compute(0, "0F1", 1, 2), compute(0, "0B0", 4, 6),
                    compute(0, "0F2", 6, 7), compute(0, "0B1", 7, 9), compute(0, "0B2", 10, 12),
                    compute(1, "1F0", 1, 2), compute(1, "1B0", 2, 4), compute(1, "1F1", 4, 5),
                    compute(1, "1B1", 5, 7), compute(1, "1F2", 7, 8), compute(1, "1B2", 8, 10)},
          .memory = {
              {0, {0}, {100}}, {0, {1}, {200}}, {0, {6}, {100}}, {1, {1}, {100}}, {1, {4}, {0}}}};
}

TEST_CASE("Kind: an action's text loses its stage and its microbatch", "[plan][timeline]") {
  CHECK(kind_of("0F2") == "F");
  CHECK(kind_of("12W345") == "W");
  CHECK(kind_of("1RECV_F2") == "RECV_F");
  CHECK(kind_of("0STEP") == "STEP");
  CHECK(kind_of("ALLREDUCE") == "ALLREDUCE");
  CHECK(kind_of("17") == "");
  CHECK(kind_of("") == "");
}

TEST_CASE("1F1B of two ranks and three microbatches idles 3 of 12 seconds", "[plan][timeline]") {
  const Timeline timeline = one_f_one_b();
  CHECK(busy_per_rank(timeline) == std::vector<Seconds>{{9}, {9}});
  CHECK(bubble_per_rank(timeline) == std::vector<Seconds>{{3}, {3}});
}

TEST_CASE("Busy time by kind sums over all ranks", "[plan][timeline]") {
  CHECK(busy_per_kind(one_f_one_b()) == std::map<std::string, Seconds>{{"F", {6}}, {"B", {12}}});
}

TEST_CASE("A transfer does not count as busy time of its rank", "[plan][timeline]") {
  Timeline timeline = one_f_one_b();
  timeline.spans.push_back({0, Row::Send, "0SEND_F0", {1}, {3}});
  timeline.spans.push_back({1, Row::Receive, "1RECV_F0", {1}, {3}});
  CHECK(busy_per_rank(timeline) == busy_per_rank(one_f_one_b()));
  CHECK(busy_per_kind(timeline) == busy_per_kind(one_f_one_b()));
}

TEST_CASE("A span whose clock stepped back takes nothing from the others", "[plan][timeline]") {
  Timeline timeline = one_f_one_b();
  timeline.spans.push_back(compute(0, "0STEP", 12, 11));
  CHECK(busy_per_rank(timeline)[0] == Seconds{9});
  CHECK(busy_per_kind(timeline).at("STEP") == Seconds{0});
}

TEST_CASE("Time in which two spans of a rank compute counts once", "[plan][timeline]") {
  const Timeline timeline{.name = "t",
                          .ranks = 1,
                          .length = {10},
                          .spans = {compute(0, "0F0", 0, 6), compute(0, "0F1", 4, 8),
                                    compute(0, "0F2", 1, 2), compute(0, "0F3", 9, 10)},
                          .memory = {}};
  CHECK(busy_per_rank(timeline) == std::vector<Seconds>{{9}});
  CHECK(bubble_per_rank(timeline) == std::vector<Seconds>{{1}});
}

TEST_CASE("A rank without work is idle for the whole iteration", "[plan][timeline]") {
  Timeline timeline = one_f_one_b();
  timeline.ranks = 3;
  CHECK(bubble_per_rank(timeline) == std::vector<Seconds>{{3}, {3}, {12}});
}

TEST_CASE("Peak memory is the largest sample of a rank, 0 without samples", "[plan][timeline]") {
  Timeline timeline = one_f_one_b();
  timeline.ranks = 3;
  CHECK(peak_per_rank(timeline) == std::vector<Bytes>{{200}, {100}, {0}});
}

}  // namespace timeline_test
