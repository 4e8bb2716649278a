// Every plan has the bits of serial training, as `--verify` demands it.

#include "trainer/support/verified_plans.hpp"

namespace verify_grid_test {

using namespace pipewright;

TEST_CASE("every schedule on 1 to 4 ranks and 1 to 4 replicas has the bits of serial training",
          "[trainer]") {
  int checked = 0;
  for (const std::string& schedule : plan::schedule_names())
    for (const int ranks : {1, 2, 3, 4})
      for (const int replicas : {1, 2, 3, 4})
        checked += test::check_plans(schedule, ranks, replicas);
  CHECK(checked > 1500);
}

}  // namespace verify_grid_test
