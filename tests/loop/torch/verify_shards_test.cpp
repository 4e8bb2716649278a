// Tests that every plan with tensor parallelism is bit-identical to serial training, as `--verify`
// requires.

#include "loop/torch/support/verified_plans.hpp"
#include "support/sanitized.hpp"

namespace verify_shards_test {

using namespace pipewright;

TEST_CASE(
    "Every schedule on up to 3 ranks and 3 replicas with tensor=2 and 4 has the bits of serial "
    "training",
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
