#include "pipewright/plan/schedules/backward_passes.hpp"

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/schedules/schedule.hpp"
#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "pipewright/plan/schedules/validate_schedule.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace backward_passes_test {

// Splitting backwards into input and weight gradients, merging them again, and adding
// recomputation.

using namespace pipewright::plan;
using pipewright::test::error_of;

Schedule read(const std::string& csv) { return parse_csv(csv, "s.csv"); }

std::string split(const std::string& csv) { return to_csv(split_backwards(read(csv))); }
std::string merged(const std::string& csv) { return to_csv(merge_backwards(read(csv))); }
std::string recomputing(const std::string& csv, const std::vector<int>& stages = {}) {
  return to_csv(with_recompute(read(csv), stages));
}

bool is_sound(const Schedule& schedule) {
  return error_of([&] { validate(schedule); }) == "no error";
}

TEST_CASE("Splitting turns each B into I directly followed by W", "[plan][backward]") {
  CHECK(split("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n") ==
        "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1W0,1F1,1I1,1W1\n");
  CHECK(split("0F0,0I0,0W0\n") == "0F0,0I0,0W0\n");  // nothing left to split
  CHECK(split("0F0,0F1\n") == "0F0,0F1\n");
}

TEST_CASE("Splitting separates fused pairs with a backward and keeps others", "[plan][backward]") {
  CHECK(split("0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n") == "0F0,0F1,0F2,0I0,0W0,0I1,0W1,0I2,0W2\n");
  CHECK(split("0F0,0F1,(0B0;0F2)OVERLAP_F_B,0B1,0B2\n") == "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0I2,0W2\n");
  CHECK(split("0F0,0F1,0I0,(0W0;0F2)OVERLAP_F_B,0B1,0B2\n") ==
        "0F0,0F1,0I0,(0W0;0F2)OVERLAP_F_B,0I1,0W1,0I2,0W2\n");
}

TEST_CASE("Merging turns only an I directly followed by its W into B", "[plan][backward]") {
  CHECK(merged("0F0,0F1,0I0,0W0,0I1,0W1\n") == "0F0,0F1,0B0,0B1\n");
  CHECK(merged("0F0,0F1,0I0,0I1,0W0,0W1\n") == "0F0,0F1,0I0,0I1,0W0,0W1\n");
  CHECK(merged("0F0,0F1,0I0,0I1,0W1,0W0\n") == "0F0,0F1,0I0,0B1,0W0\n");
  CHECK(merged("0F0,1F0,1I0,0I0,1W0,0W0\n") == "0F0,1F0,1I0,0I0,1W0,0W0\n");  // other stages
}

TEST_CASE("Merging does not cross the edge of a fused pair", "[plan][backward]") {
  CHECK(merged("0F0,0F1,0B0,(0I1;0F2)OVERLAP_F_B,0W1,0I2,0W2\n") ==
        "0F0,0F1,0B0,(0I1;0F2)OVERLAP_F_B,0W1,0B2\n");
  CHECK(merged("0F0,0F1,(0F2;0I0)OVERLAP_F_B,0W0,0B1,0B2\n") ==
        "0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n");
}

TEST_CASE("Splitting and merging restores the schedule except its fused pairs",
          "[plan][backward]") {
  for (const std::string& name : schedule_names()) {
    Schedule unfused = make_schedule(name, 4, 8);
    for (auto& actions : unfused.ranks)
      for (Action& action : actions)
        action.fused_with_next = false;
    CAPTURE(name);
    const Schedule split = split_backwards(unfused);
    CHECK(merge_backwards(split) == merge_backwards(unfused));
    CHECK(is_sound(split));
    CHECK(is_sound(split_backwards(make_schedule(name, 4, 8))));
    CHECK(is_sound(merge_backwards(make_schedule(name, 4, 8))));
  }
}

TEST_CASE("Recompute is inserted directly before each backward of the given stages",
          "[plan][backward]") {
  CHECK(recomputing("0F0,0F1,0B0,0B1\n") == "0F0,0F1,0R0,0B0,0R1,0B1\n");
  CHECK(recomputing("0F0,0I0,0W0\n") == "0F0,0R0,0I0,0W0\n");
  CHECK(recomputing("0F0,1F0,1B0,0B0\n", {1}) == "0F0,1F0,1R0,1B0,0B0\n");
  CHECK(recomputing("0F0,0F1\n") == "0F0,0F1\n");
}

TEST_CASE("Recompute is inserted only once, however often it is requested", "[plan][backward]") {
  CHECK(recomputing("0F0,0R0,0B0\n") == "0F0,0R0,0B0\n");
  CHECK(recomputing("0F0,1F0,1R0,1B0,0B0\n") == "0F0,1F0,1R0,1B0,0R0,0B0\n");
}

TEST_CASE("Recompute is never inserted inside a fused pair", "[plan][backward]") {
  CHECK(recomputing("0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n", {0}) ==
        "0F0,0F1,0F2,0R0,0B0,0R1,0B1,0R2,0B2\n");
  CHECK(recomputing("0F0,0F1,(0B0;0F2)OVERLAP_F_B,0B1,0B2\n") ==
        "0F0,0F1,0R0,(0B0;0F2)OVERLAP_F_B,0R1,0B1,0R2,0B2\n");
}

TEST_CASE("Recompute keeps every schedule valid and adds one action per backward",
          "[plan][backward]") {
  for (const std::string& name : schedule_names()) {
    const Schedule plain = make_schedule(name, 4, 8), recomputing = with_recompute(plain);
    CAPTURE(name);
    CHECK(is_sound(recomputing));
    std::size_t backwards = 0, more = 0;
    for (std::size_t rank = 0; rank < plain.ranks.size(); ++rank) {
      more += recomputing.ranks[rank].size() - plain.ranks[rank].size();
      for (const Action& action : plain.ranks[rank])
        backwards += makes_input_gradient(action.kind);
    }
    CHECK(more == backwards);
    CHECK(peak_activations(recomputing) == peak_activations(plain));
  }
}

}  // namespace backward_passes_test
