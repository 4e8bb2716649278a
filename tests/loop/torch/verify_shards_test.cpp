// Every plan with tensor shards has the bits of serial training, as `--verify` demands it.

#include "loop/torch/support/verified_plans.hpp"
#include "support/sanitized.hpp"

namespace verify_shards_test {

using namespace pipewright;

TEST_CASE(
    "every schedule on up to 3 ranks and up to 3 replicas has the bits of serial training on 2 and "
    "4 shards",
    "[loop]") {
  int checked = 0;
  for (const std::string& schedule : plan::schedule_names())
    for (const auto& [ranks, replicas] :
         test::sanitized ? std::vector<std::pair<int, int>>{{2, 2}}
                         : std::vector<std::pair<int, int>>{{1, 1}, {1, 3}, {2, 1}, {2, 2}, {3, 2}})
      checked += test::check_sharded_plans(schedule, ranks, replicas);
  CHECK(checked > (test::sanitized ? 40 : 150));
}

}  // namespace verify_shards_test
