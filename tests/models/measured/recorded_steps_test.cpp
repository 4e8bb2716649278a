#include "pipewright/models/measured/recorded_steps.hpp"

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace recorded_steps_test {

using namespace pipewright::plan;
using namespace pipewright::models;
using pipewright::test::error_of;

RecordedSteps read(const std::string& lines) {
  return read_recorded_steps("step,replica,rank,action,seconds\n" + lines, "steps.csv");
}

TEST_CASE("A table of steps is read by operation, in the order of its steps", "[plan][measured]") {
  const RecordedSteps record = read(
      "33,0,1,1F0,0.25\n"
      "23,0,1,1F0,0.5\n"
      "23,0,0,0STEP,0\n"
      "33,0,0,0STEP,1e-3\n");
  CHECK(record.numbers == std::vector{23, 33});
  REQUIRE(record.operations.size() == 2);
  CHECK(record.operations[0] == RecordedOperation{0, 0, *parse_instruction("0STEP"), {0, 0.001}});
  CHECK(record.operations[1] == RecordedOperation{0, 1, *parse_instruction("1F0"), {0.5, 0.25}});
  CHECK(read_recorded_steps(to_csv(record), "again.csv") == record);
}

TEST_CASE("All faults of a table of steps are reported at once, with their places",
          "[plan][measured]") {
  CHECK(error_of([] { read_recorded_steps("step,rank,action,seconds\n", "steps.csv"); }) ==
        "steps.csv:1:1: the first line must be step,replica,rank,action,seconds");
  CHECK(error_of([] { read_recorded_steps("", "steps.csv"); }) ==
        "steps.csv:1:1: the first line must be step,replica,rank,action,seconds");
  CHECK(error_of([] { read(""); }) == "steps.csv: has a header and no operations");
  CHECK(error_of([] {
          read(
              "0,0,0,0F0\n"
              "one,-1,0,0X0,fast\n"
              "0,0,0,0F0,-1\n"
              "0,0,2147483647,0F0,1e308\n");
        }) ==
        "steps.csv:2:1: 4 cells, but the header has 5\n"
        "steps.csv:3:1: step is \"one\": a whole number from 0 to 1e9 is needed\n"
        "steps.csv:3:5: replica is \"-1\": a whole number from 0 to 1e9 is needed\n"
        "steps.csv:3:10: action is \"0X0\": an instruction is needed, such as 2F0 or 2STEP\n"
        "steps.csv:3:14: seconds is \"fast\": a number from 0 to 1e9 is needed\n"
        "steps.csv:4:11: seconds is \"-1\": a number from 0 to 1e9 is needed\n"
        "steps.csv:5:5: rank is \"2147483647\": a whole number from 0 to 1e9 is needed\n"
        "steps.csv:5:20: seconds is \"1e308\": a number from 0 to 1e9 is needed");
  CHECK(error_of([] {
          read(
              "0,0,0,0F0,1\n"
              "0,0,0,0F0,1\n"
              "1,0,2,2B0,1\n");
        }) ==
        "steps.csv:3:1: step 0 of 0F0 of rank 0 of replica 0 appears twice\n"
        "steps.csv: 0F0 of rank 0 of replica 0 has no line for step 1, which others have\n"
        "steps.csv: 2B0 of rank 2 of replica 0 has no line for step 0, which others have");
}

}  // namespace recorded_steps_test
