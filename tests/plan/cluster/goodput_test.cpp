#include "pipewright/plan/cluster/goodput.hpp"

#include <cmath>

#include "support/catch.hpp"

namespace goodput_test {

using namespace pipewright::plan;

TEST_CASE("The failure rate of many devices is the sum of their rates", "[plan]") {
  CHECK(between_failures({50'000 * 3600.0}, 1000).value == Approx(50 * 3600.0));
}

TEST_CASE("The best interval between checkpoints is Young's", "[plan]") {
  // Half a minute per checkpoint and one failure a day: √(2 · 30 · 86400) = 2276.8… seconds.
  CHECK(best_checkpoint_interval({.checkpoint = {30}, .between_failures = {86400}}).value ==
        Approx(2276.8).epsilon(1e-4));
  CHECK(best_checkpoint_interval({.checkpoint = {50}, .between_failures = {400}}).value ==
        Approx(200));
}

TEST_CASE("Goodput has its closed forms at the limits", "[plan]") {
  // Failures only: τ / (M (e^(τ/M) − 1)), which is 1 / (e − 1) for an interval of M.
  CHECK(goodput({.between_failures = {100}}, {100}) == Approx(1 / (std::exp(1.0) - 1)));
  // A restart that also takes M divides that by e again.
  CHECK(goodput({.restart = {100}, .between_failures = {100}}, {100}) ==
        Approx(1 / (std::exp(1.0) * (std::exp(1.0) - 1))));
  // Hardly any failures: only the checkpoints' time is lost.
  CHECK(goodput({.checkpoint = {10}, .restart = {60}, .between_failures = {1e15}}, {90}) ==
        Approx(0.9));
  // To first order 1 − √(2 C / M) at the best interval: here 1 − 0.01.
  const FailureCosts costs{.checkpoint = {5}, .between_failures = {100'000}};
  CHECK(goodput(costs, best_checkpoint_interval(costs)) == Approx(0.99).epsilon(1e-4));
}

TEST_CASE("No interval has a higher goodput than Young's, up to his first-order error", "[plan]") {
  int tried = 0;
  for (const double checkpoint : {1.0, 20.0, 300.0})
    for (const double mean : {3600.0, 86400.0, 3e6}) {
      const FailureCosts costs{
          .checkpoint = {checkpoint}, .restart = {120}, .between_failures = {mean}};
      const Seconds best = best_checkpoint_interval(costs);
      const double kept = goodput(costs, best);
      CHECK(kept < 1);
      for (double factor = 0.1; factor < 10; factor *= 1.05) {
        CHECK(goodput(costs, best * factor) <= kept + 0.5 * checkpoint / mean);
        ++tried;
      }
      CHECK(goodput(costs, best * 0.25) < kept);
      CHECK(goodput(costs, best * 4) < kept);
    }
  CHECK(tried == 9 * 95);
}

}  // namespace goodput_test
