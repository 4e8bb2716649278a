#include "pipewright/plan/schedules/validate_schedule.hpp"

#include <algorithm>

#include "pipewright/plan/schedules/schedule.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace validate_schedule_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

/// Returns the error of a schedule in torch's CSV format.
std::string error_in(const std::string& csv) {
  return error_of([&] { validate(parse_csv(csv, "s.csv")); });
}

TEST_CASE("Valid schedules pass: split backwards, several stages per rank, recomputation",
          "[plan][schedule]") {
  CHECK(error_in("0F0,0I0,0W0\n") == "no error");
  CHECK(error_in("0F0,0F1,0I0,0I1,0W1,0W0\n1F0,1I0,1F1,1I1,1W0,1W1\n") == "no error");
  CHECK(error_in("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n") == "no error");
  CHECK(error_in("0F0,0R0,0B0\n") == "no error");
}

TEST_CASE("Any order that can run is valid, even an unusual one", "[plan][schedule]") {
  CHECK(error_in("0F1,0F0,0B0,0B1\n1F1,1F0,1B0,1B1\n") == "no error");
}

TEST_CASE("All missing actions are named together", "[plan][schedule]") {
  CHECK(error_in("0F0,0F1,0B0,0B1\n1F0,1B0,1B1\n") ==
        "rank 1, action 1F1: the forward occurs 0 times instead of once");
  CHECK(error_in("0F0,0F1,0B0\n1F0,1B0,1B1\n") ==
        "rank 0, action 0B1: the backward occurs 0 times instead of once\n"
        "rank 1, action 1F1: the forward occurs 0 times instead of once");
}

TEST_CASE("A microbatch that is left out is reported missing on every stage", "[plan][schedule]") {
  CHECK(error_in("0F0,0F2,0B0,0B2\n") ==
        "rank 0, action 0F1: the forward occurs 0 times instead of once\n"
        "rank 0, action 0B1: the backward occurs 0 times instead of once");
}

TEST_CASE("A microbatch above the schedule's number is rejected", "[plan][schedule]") {
  Schedule schedule = parse_csv("0F0,0B0,0F1,0B1\n", "s.csv");
  schedule.microbatches = 1;
  CHECK(error_of([&] { validate(schedule); }) ==
        "rank 0, action 0F1: there are 1 microbatches only\n"
        "rank 0, action 0B1: there are 1 microbatches only");
}

TEST_CASE("A duplicate action is rejected", "[plan][schedule]") {
  CHECK(error_in("0F0,0F0,0B0\n") ==
        "rank 0, action 0F0: the forward occurs 2 times instead of once");
  CHECK(error_in("0F0,0B0,0B0\n") ==
        "rank 0: stage 0, microbatch 0: 2 input gradients and 2 weight gradients, one of each is "
        "needed (B counts as both)");
}

TEST_CASE("A backward is B, or I and W, never a mixture or only one half", "[plan][schedule]") {
  CHECK(error_in("0F0,0B0,0W0\n") ==
        "rank 0: stage 0, microbatch 0: 1 input gradients and 2 weight gradients, one of each is "
        "needed (B counts as both)");
  CHECK(error_in("0F0,0I0\n") ==
        "rank 0: stage 0, microbatch 0: 1 input gradients and 0 weight gradients, one of each is "
        "needed (B counts as both)");
}

TEST_CASE(
    "A microbatch that two ranks run on one stage is rejected at every action of the second rank",
    "[plan][schedule]") {
  CHECK(error_in("0F0,0B1\n0F1,0B0\n") ==
        "rank 1, action 0F1: microbatch 1 of stage 0 is on rank 0 as well\n"
        "rank 1, action 0B0: microbatch 0 of stage 0 is on rank 0 as well");
}

TEST_CASE("A stage without a rank is rejected", "[plan][schedule]") {
  CHECK(error_in("0F0,0B0\n2F0,2B0\n") == "stage 1 is on no rank");
}

TEST_CASE("A backward before its forward waits forever", "[plan][schedule]") {
  CHECK(error_in("0B0,0F0\n") ==
        "deadlock: rank 0 at 0B0 waits for 0F0, which rank 0 runs after 0B0");
}

TEST_CASE("A weight gradient before the input gradient waits forever", "[plan][schedule]") {
  CHECK(error_in("0F0,0W0,0I0\n") ==
        "deadlock: rank 0 at 0W0 waits for 0I0, which rank 0 runs after 0W0");
}

TEST_CASE("A recomputation before its forward waits forever", "[plan][schedule]") {
  CHECK(error_in("0R0,0F0,0B0\n") ==
        "deadlock: rank 0 at 0R0 waits for 0F0, which rank 0 runs after 0R0");
}

TEST_CASE("Two ranks that wait for each other are both named", "[plan][schedule]") {
  // Rank 0 needs the gradient of microbatch 0 before it sends microbatch 1; rank 1 the reverse.
  CHECK(
      error_in("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n") ==
      "deadlock: rank 0 at 0B0 waits for 1B0, which rank 1 runs after 1F1; rank 1 at 1F1 waits for "
      "0F1, which rank 0 runs after 0B0");
}

TEST_CASE("A wrong order on one rank is rejected although it has both stages", "[plan][schedule]") {
  CHECK(error_in("1F0,0F0,1B0,0B0\n") ==
        "deadlock: rank 0 at 1F0 waits for 0F0, which rank 0 runs after 1F0");
}

TEST_CASE("A mistyped large index gives one error line, not a million", "[plan][schedule]") {
  CHECK(error_in("0F0,0B0,900000F0\n") ==
        "900001 stages and 1 microbatches need 900001 actions at least, but there are 3");
  CHECK(error_in("0F0,0B0,0F900000\n") ==
        "1 stages and 900001 microbatches need 900001 actions at least, but there are 3");
  CHECK(error_in("999999F999999\n") ==
        "1000000 stages and 1000000 microbatches need 1000000000000 actions at least, but there "
        "are 1");
}

TEST_CASE("The shortest of several cycles is shown", "[plan][schedule]") {
  // Ranks 0 and 1 wait for each other; rank 2 waits for rank 1, and rank 3 for rank 2.
  CHECK(
      error_in("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n2F0,2F1,2B0,2B1\n3F0,3F1,3B0,3B1\n") ==
      "deadlock: rank 0 at 0B0 waits for 1B0, which rank 1 runs after 1F1; rank 1 at 1F1 waits for "
      "0F1, which rank 0 runs after 0B0");
}

TEST_CASE("A schedule without any backward is a valid inference", "[plan][schedule]") {
  CHECK(error_in("0F0,0F1\n1F0,1F1\n") == "no error");
  CHECK(error_in("0F0\n1F0,1F1\n") ==
        "rank 0, action 0F1: the forward occurs 0 times instead of once");
}

TEST_CASE("A fused pair whose actions need each other is rejected", "[plan][schedule]") {
  CHECK(error_in("(0F0;0B0)OVERLAP_F_B\n") ==
        "rank 0, actions 0F0 and 0B0: a fused pair needs two microbatches, or one of its actions "
        "waits for the other");
}

TEST_CASE("A fused pair starts when both of its actions can", "[plan][schedule]") {
  CHECK(error_in("0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n") == "no error");
  // Run one after the other, these actions would work. As a pair, they wait for rank 1, which waits
  // for 0F1.
  CHECK(
      error_in("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1F1,1B0,1B1\n") ==
      "deadlock: rank 0 at 0F1 waits for 1B0, which rank 1 runs after 1F1; rank 1 at 1F1 waits for "
      "0F1");
}

TEST_CASE("Only the first fifty of many errors are listed", "[plan][schedule]") {
  std::string csv = "0F0,0B0";
  for (int m = 1; m < 60; ++m)
    csv += ",0F" + std::to_string(m);
  const std::string errors = error_in(csv + "\n");
  CHECK(std::count(errors.begin(), errors.end(), '\n') == 50);
  CHECK(errors.substr(errors.rfind('\n') + 1) == "… and 9 more");
}

}  // namespace validate_schedule_test
