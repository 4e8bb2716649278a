#include "pipewright/plan/schedules/schedule.hpp"

#include <tuple>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace schedule_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

/// P and M.
using Sizes = std::pair<int, int>;

std::vector<Sizes> grid() {
  std::vector<Sizes> sizes;
  for (const int stages : {1, 2, 3, 4, 6, 8, 16})
    for (const int microbatches : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 32, 64})
      sizes.push_back({stages, microbatches});
  return sizes;
}

TEST_CASE("1F1B: the first of two ranks runs one forward ahead", "[plan][schedule]") {
  CHECK(to_string(make_1f1b(2, 3)) ==
        "0F0 0F1 0B0 0F2 0B1 0B2\n"  // warm-up: 0F0, cool-down: 0B2
        "1F0 1B0 1F1 1B1 1F2 1B2\n");
}

TEST_CASE(
    "1F1B with fewer microbatches than ranks has only warm-up and cool-down on the first ranks",
    "[plan][schedule]") {
  CHECK(to_string(make_1f1b(4, 2)) ==
        "0F0 0F1 0B0 0B1\n"
        "1F0 1F1 1B0 1B1\n"
        "2F0 2F1 2B0 2B1\n"
        "3F0 3B0 3F1 3B1\n");
}

TEST_CASE("GPipe runs all forwards, then all backwards", "[plan][schedule]") {
  CHECK(to_string(make_gpipe(2, 3)) ==
        "0F0 0F1 0F2 0B0 0B1 0B2\n"
        "1F0 1F1 1F2 1B0 1B1 1B2\n");
}

TEST_CASE("A route gives the rank of each stage", "[plan][schedule]") {
  CHECK(placement_of(make_1f1b(4, 2)) == one_route({0, 1, 2, 3}));
  CHECK(placement_of(parse_csv("0F0,3F0\n2F0\n", "s.csv")) == one_route({0, -1, 1, 0}));
}

TEST_CASE("Microbatches that pass the ranks in two directions take two routes",
          "[plan][schedule]") {
  const Placement placement = placement_of(make_chimera(2, 4));
  CHECK(placement.routes == std::vector<std::vector<int>>{{0, 1}, {1, 0}});
  CHECK(placement.route_of_microbatch == std::vector<int>{0, 0, 1, 1});
}

TEST_CASE("A schedule is found by name in any case", "[plan][schedule]") {
  CHECK(make_schedule("GPipe", 2, 3) == make_gpipe(2, 3));
  CHECK(make_schedule("1F1B", 2, 3) == make_1f1b(2, 3));
  CHECK(error_of([] { make_schedule("1f1", 2, 3); }) ==
        "no schedule is called \"1f1\", did you mean \"1f1b\"? (known: " +
            listed(schedule_names()) + ")");
}

TEST_CASE("A schedule without ranks or microbatches is rejected with an error message",
          "[plan][schedule]") {
  CHECK(error_of([] { make_gpipe(0, 4); }) == "gpipe: 0 ranks asked for, the least is 1");
  CHECK(error_of([] { make_gpipe(4, 0); }) == "gpipe: 0 microbatches asked for, the least is 1");
  CHECK(error_of([] { make_1f1b(-1, 4); }) == "1f1b: -1 ranks asked for, the least is 1");
  CHECK(error_of([] { make_1f1b(4, -2); }) == "1f1b: -2 microbatches asked for, the least is 1");
}

TEST_CASE("A schedule file has one row per rank", "[plan][schedule]") {
  CHECK(to_csv(make_1f1b(2, 3)) ==
        "0F0,0F1,0B0,0F2,0B1,0B2\n"
        "1F0,1B0,1F1,1B1,1F2,1B2\n");
}

TEST_CASE("A schedule reads back from CSV as it was written", "[plan][schedule]") {
  for (const auto& [stages, microbatches] : grid()) {
    const Schedule schedule = make_1f1b(stages, microbatches);
    CAPTURE(stages, microbatches);
    REQUIRE(parse_csv(to_csv(schedule), "s.csv") == schedule);
  }
}

TEST_CASE("Empty cells are idle slots; quotes and line ends of any system are accepted",
          "[plan][schedule]") {
  const Schedule read = parse_csv("0F0,,,0B0,\r\n ,\"1F0\", 1B0\r\n", "s.csv");
  CHECK(to_string(read) == "0F0 0B0\n1F0 1B0\n");
  CHECK(read.microbatches == 1);
  CHECK(parse_csv("0F0,0B0", "s.csv") == make_gpipe(1, 1));
}

TEST_CASE("A fused pair is one cell", "[plan][schedule]") {
  const std::string text = "0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n";
  const Schedule schedule = parse_csv(text, "s.csv");
  CHECK(schedule.ranks[1][1].fused_with_next);
  CHECK(schedule.ranks[1][2] == Action{ActionKind::Backward, 1, 0});
  CHECK(to_csv(schedule) == text);
  CHECK(cells(schedule.ranks[1]) == std::vector<std::string>{"1F0", "(1F1;1B0)OVERLAP_F_B", "1B1"});
}

TEST_CASE("All errors of a schedule file are reported together, with row and column",
          "[plan][schedule]") {
  const std::string rule =
      " is not an action: write stage, one of F B I W R, microbatch, such as 3F0, or a fused pair, "
      "such "
      "as (1F2;0B1)OVERLAP_F_B";
  CHECK(error_of([] { parse_csv("0F0,0G0,0B0\n1F0,F1,,1B0 1,(1F1)OVERLAP_F_B\n", "s.csv"); }) ==
        "s.csv:1:2: \"0G0\"" + rule + "\ns.csv:2:2: \"F1\"" + rule + "\ns.csv:2:4: \"1B0 1\"" +
            rule + "\ns.csv:2:5: \"(1F1)OVERLAP_F_B\"" + rule);
}

TEST_CASE("A schedule file without an action is rejected", "[plan][schedule]") {
  CHECK(error_of([] { parse_csv("", "s.csv"); }) == "s.csv:1:1: no action in the file");
  CHECK(error_of([] { parse_csv(",,\n\n", "s.csv"); }) == "s.csv:1:1: no action in the file");
}

}  // namespace schedule_test
