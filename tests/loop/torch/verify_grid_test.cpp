// Tests that every plan is bit-identical to serial training, as `--verify` requires.

#include "loop/torch/support/verified_plans.hpp"
#include "support/sanitized.hpp"

namespace verify_grid_test {

using namespace pipewright;

TEST_CASE("Every schedule on 1 to 4 ranks and 1 to 4 replicas has the bits of serial training",
          "[loop][soak]") {
  const std::vector all{1, 2, 3, 4};
  test::PairCover cover;
  int checked = 0;
  for (const std::string& schedule : plan::schedule_names())
    for (const int ranks : test::sanitized ? std::vector{2, 4} : all)
      for (const int replicas : test::sanitized ? std::vector{1, 3} : all)
        checked += test::check_plans(schedule, ranks, replicas, test::sanitized ? nullptr : &cover);
  CHECK(checked > (test::sanitized ? 150 : test::covers_all() ? 1000 : 150));
}

}  // namespace verify_grid_test
