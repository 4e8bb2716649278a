// Every plan with tensor shards has the bits of serial training, as `--verify` demands it.

#include "loop/torch/support/verified_plans.hpp"
#include "support/sanitized.hpp"

namespace verify_shards_test {

using namespace pipewright;

TEST_CASE(
    "every schedule on 1 to 3 ranks and 1 to 3 replicas has the bits of serial training on 2 and 4 "
    "shards",
    "[loop]") {
  int checked = 0;
  for (const std::string& schedule : plan::schedule_names())
    for (const int ranks : test::sanitized ? std::vector{2} : std::vector{1, 2, 3})
      for (const int replicas : test::sanitized ? std::vector{2} : std::vector{1, 2, 3})
        checked += test::check_sharded_plans(schedule, ranks, replicas);
  CHECK(checked > (test::sanitized ? 40 : 200));
}

}  // namespace verify_shards_test
