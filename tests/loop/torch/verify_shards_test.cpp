// Every plan with tensor shards has the bits of serial training, as `--verify` demands it.

#include "loop/torch/support/verified_plans.hpp"
#include "support/sanitized.hpp"

namespace verify_shards_test {

using namespace pipewright;

TEST_CASE(
    "every schedule on 1 to 3 ranks, 1 or 2 replicas and 2 or 4 shards has the bits of serial "
    "training",
    "[loop]") {
  int checked = 0;
  for (const std::string& schedule : plan::schedule_names())
    for (const int ranks : test::sanitized ? std::vector{2} : std::vector{1, 2, 3})
      for (const int replicas : {1, 2})
        for (const int tensor : test::sanitized ? std::vector{2} : std::vector{2, 4})
          checked += test::check_sharded_plans(schedule, ranks, replicas, tensor);
  CHECK(checked > (test::sanitized ? 40 : 200));
}

}  // namespace verify_shards_test
