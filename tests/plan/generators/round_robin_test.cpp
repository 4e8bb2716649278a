#include "pipewright/plan/generators/round_robin.hpp"

#include <algorithm>

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"
#include "pipewright/plan/schedules/validate_schedule.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/make_schedule.hpp"

namespace round_robin_test {

using namespace pipewright::plan;
using pipewright::test::error_of;
using pipewright::test::make;

TEST_CASE("1F1B-RR: copies of a stage take the microbatches in turn", "[plan][schedule]") {
  const Schedule schedule = make_1f1b_rr({2, 1, 1}, 4);
  CHECK(to_string(schedule) ==
        "0F0 0F2 0B0 0B2\n"  // two copies of stage 0
        "0F1 0F3 0B1 0B3\n"
        "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3\n"
        "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3\n");
  const Placement placement = placement_of(schedule);
  CHECK(placement.routes == std::vector<std::vector<int>>{{0, 2, 3}, {1, 2, 3}});
  CHECK(placement.route_of_microbatch == std::vector{0, 1, 0, 1});
  CHECK(make_1f1b_rr({1, 1, 1, 1}, 6) == make("1f1b", 4, 6));
}

TEST_CASE("1F1B-RR is valid for any numbers of copies, and reduces the gradients of several copies",
          "[plan][schedule]") {
  int checked = 0;
  for (int a = 1; a <= 4; ++a)
    for (int b = 1; b <= 4; ++b)
      for (int c = 1; c <= 4; ++c)
        for (const int microbatches : {4, 7, 12}) {
          const Schedule schedule = make_1f1b_rr({a, b, c}, microbatches);
          CAPTURE(a, b, c, microbatches);
          REQUIRE_NOTHROW(validate(schedule));
          const Program program = lower(schedule, {.share_loss = true});
          REQUIRE_NOTHROW(validate(program));
          for (int rank = 0; rank < a + b + c; ++rank) {
            const int copies = rank < a ? a : rank < a + b ? b : c;
            const auto& list = program.ranks[static_cast<std::size_t>(rank)];
            REQUIRE(std::any_of(list.begin(), list.end(), [](const Instruction& i) {
                      return i.kind == InstructionKind::ReduceGradients;
                    }) == (copies > 1));
          }
          ++checked;
        }
  CHECK(checked == 192);
}

TEST_CASE("1F1B-RR: invalid numbers of copies are rejected with valid ones", "[plan][schedule]") {
  CHECK(error_of([] { make_1f1b_rr({}, 4); }) ==
        "1f1b: copies []: every stage needs one at least, such as 2,1,1");
  CHECK(error_of([] {
          make_1f1b_rr({2, 0}, 4);
        }) == "1f1b: copies [2, 0]: every stage needs one at least, such as 2,1,1");
  CHECK(error_of([] {
          make_1f1b_rr({1, 3}, 2);
        }) == "1f1b: 2 microbatches asked for, but a stage with 3 copies needs as many: 3");
}

}  // namespace round_robin_test
