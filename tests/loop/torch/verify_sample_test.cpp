// Tests a sample of the grid; it is run with each instruction set that the CPU has.

#include "loop/torch/support/verified_plans.hpp"

namespace verify_sample_test {

using namespace pipewright;

TEST_CASE("Every schedule has the bits of serial training with this instruction set", "[loop]") {
  int checked = 0;
  for (const std::string& schedule : plan::schedule_names())
    for (const auto& [ranks, replicas] : {std::pair{1, 3}, {3, 2}})
      checked += test::check_plans(schedule, ranks, replicas);
  CHECK(checked > 100);
}

TEST_CASE("Tensor parallelism has the bits of serial training with this instruction set",
          "[loop]") {
  int checked = 0;
  for (const char* schedule : {"1f1b", "zb-h1", "interleaved-1f1b", "zbv"})
    for (const int ranks : {1, 2})
      checked += test::check_sharded_plans(schedule, ranks, /*replicas=*/2);
  CHECK(checked >= 15);
}

}  // namespace verify_sample_test
