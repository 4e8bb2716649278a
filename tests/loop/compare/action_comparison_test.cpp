#include "pipewright/loop/compare/action_comparison.hpp"

#include "support/catch.hpp"

namespace action_comparison_test {

using namespace pipewright::plan;
using namespace pipewright::loop;

Timeline timeline(std::vector<Span> spans) {
  return {.name = "t", .ranks = 2, .length = {10}, .spans = std::move(spans), .memory = {}};
}

Span compute(int rank, const char* action, double start, double end) {
  return {rank, Row::Compute, action, {start}, {end}};
}

TEST_CASE("Each action is compared with its own prediction", "[plan][actions]") {
  const auto found = compare_actions(
      timeline({compute(0, "0F0", 0, 2),
                compute(0, "0STEP", 5, 6),
                compute(0, "0STEP", 8, 9),
                compute(1, "1F0", 3, 4),
                {0, Row::Send, "0SEND_F0", {2}, {3}}}),
      // The same actions in another order, and one that was not predicted.
      timeline({compute(1, "1F0", 3.5, 5), compute(0, "0STEP", 9, 9.25), compute(0, "0STEP", 6, 7),
                compute(0, "0F0", 0.5, 3), compute(1, "1F1", 5, 6)}));
  REQUIRE(found.pairs.size() == 4);
  CHECK(actions_csv(found) ==
        "rank,action,predicted_start_s,predicted_s,measured_start_s,measured_s,error_s\n"
        "0,0F0,0,2,0.5,2.5,-0.5\n"
        "0,0STEP,5,1,6,1,0\n"
        "0,0STEP,8,1,9,0.25,0.75\n"
        "1,1F0,3,1,3.5,1.5,-0.5\n");
  CHECK(found.only_predicted.empty());
  CHECK(found.only_measured == std::vector<std::string>{"rank 1, 1F1"});
  const std::string table = actions_table(found, 1);
  CHECK(table.find("0STEP") != std::string::npos);  // only the largest error
  CHECK(table.find("0F0") == std::string::npos);
  CHECK(table.find("only measured: rank 1, 1F1\n") != std::string::npos);
}

}  // namespace action_comparison_test
