#include "pipewright/sim/jitter/jitter.hpp"

#include "sim/support/equal_ranks.hpp"
#include "sim/support/recorded.hpp"
#include "support/error_of.hpp"

namespace jitter_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

std::vector<double> factors(const Jitter& jitter, const WorkerPlace& place,
                            const std::string& action) {
  const double* const first = jitter.factors(place, parse_instruction(action).value());
  if (first == nullptr)
    return {};
  return {first, first + jitter.steps()};
}

TEST_CASE("A factor is a duration divided by the mean of its kind and stage, over all pipelines",
          "[sim][jitter]") {
  const Jitter jitter(record_of({recorded(0, 0, "0F0", {1, 2}), recorded(0, 0, "0F1", {2, 3}),
                                 recorded(0, 1, "1F0", {8, 8}), recorded(1, 0, "0F0", {2, 2}),
                                 recorded(1, 0, "0F1", {2, 2}), recorded(1, 1, "1F0", {24, 24})}));
  CHECK(jitter.steps() == 2);
  CHECK(jitter.replicas() == 2);
  CHECK(jitter.ranks() == 2);
  using Factors = std::vector<double>;
  CHECK(factors(jitter, {.replica = 0, .rank = 0, .ranks = 2}, "0F0") == Factors{0.5, 1});
  CHECK(factors(jitter, {.replica = 0, .rank = 0, .ranks = 2}, "0F1") == Factors{1, 1.5});
  // The second pipeline's last rank is slow in every step, which stays so.
  CHECK(factors(jitter, {.replica = 0, .rank = 1, .ranks = 2}, "1F0") == Factors{0.5, 0.5});
  CHECK(factors(jitter, {.replica = 1, .rank = 1, .ranks = 2}, "1F0") == Factors{1.5, 1.5});
  // Additional microbatches continue in the following steps, and wrap around after the last.
  CHECK(factors(jitter, {.replica = 0, .rank = 0, .ranks = 2}, "0F2") == Factors{1, 0.5});
  CHECK(factors(jitter, {.replica = 0, .rank = 0, .ranks = 2}, "0F4") == Factors{0.5, 1});
  // Additional pipelines and ranks: the first and the last map to the first and the last.
  CHECK(factors(jitter, {.replica = 3, .rank = 7, .ranks = 8}, "7F0") == Factors{1.5, 1.5});
  CHECK(factors(jitter, {.replica = 2, .rank = 3, .ranks = 8}, "3F0") == Factors{0.5, 1});
  CHECK(factors(jitter, {.replica = 0, .rank = 4, .ranks = 8}, "4F0") == Factors{0.5, 0.5});
}

TEST_CASE("Workers that were not recorded vary like a recorded one at a similar place",
          "[sim][jitter]") {
  // Some of four ranks of pipelines 2 and 5 are recorded.
  const Jitter jitter(record_of({recorded(2, 0, "0F0", {1, 3}), recorded(2, 3, "3F0", {3, 1}),
                                 recorded(5, 3, "3F0", {1, 3})}));
  CHECK(jitter.replicas() == 2);
  using Factors = std::vector<double>;
  const auto of = [&](int replica, int rank, int ranks = 4) {
    return factors(jitter, {.replica = replica, .rank = rank, .ranks = ranks},
                   std::to_string(rank) + "F0");
  };
  const Factors rising{0.5, 1.5}, falling{1.5, 0.5};
  CHECK(of(0, 0) == rising);
  CHECK(of(0, 1) == rising);
  CHECK(of(0, 2) == falling);
  CHECK(of(0, 3) == falling);
  CHECK(of(1, 0) == rising);  // that of the other pipeline
  CHECK(of(1, 2) == rising);
  CHECK(of(3, 3) == rising);
  CHECK(of(0, 7, 8) == falling);
}

TEST_CASE("Kinds that the record does not have vary like the most similar one, or not at all",
          "[sim][jitter]") {
  const Jitter jitter(record_of({recorded(0, 0, "0F0", {1, 3}), recorded(0, 0, "0B0", {3, 1}),
                                 recorded(0, 0, "0STEP", {0, 0})}));
  using Factors = std::vector<double>;
  const Factors as_forward{0.5, 1.5}, as_backward{1.5, 0.5};
  CHECK(factors(jitter, {}, "0R0") == as_forward);
  CHECK(factors(jitter, {}, "0I0") == as_backward);
  CHECK(factors(jitter, {}, "0W0") == as_backward);
  CHECK(factors(jitter, {}, "0LOAD0").empty());
  CHECK(factors(jitter, {}, "0SEND_F0").empty());
  CHECK(factors(jitter, {}, "0STEP").empty());  // took no time
}

TEST_CASE("A rank with several stages has factors for each", "[sim][jitter]") {
  const Jitter jitter(record_of({recorded(0, 0, "0F0", {1, 3}), recorded(0, 0, "2F0", {3, 1}),
                                 recorded(0, 1, "1F0", {1, 1}), recorded(0, 1, "3F0", {1, 1})}));
  CHECK(factors(jitter, {.ranks = 2, .chunk = 0}, "0F0") == std::vector{0.5, 1.5});
  CHECK(factors(jitter, {.ranks = 2, .chunk = 1}, "2F0") == std::vector{1.5, 0.5});
  CHECK(factors(jitter, {.ranks = 2, .chunk = 2}, "4F0") == std::vector{0.5, 1.5});
}

TEST_CASE("Workers are slow together as often as their steps are correlated", "[sim][jitter]") {
  const auto together = [](std::vector<double> other_rank, std::vector<double> other_pipeline) {
    return together_in(record_of({recorded(0, 0, "0F0", {1, 1, 2, 2}),
                                  recorded(0, 1, "1F0", std::move(other_rank)),
                                  recorded(1, 0, "0F0", std::move(other_pipeline))}));
  };
  CHECK(together({1, 2, 1, 2}, {3, 5, 3, 5}).pipelines == 0);
  CHECK(together({1, 2, 1, 2}, {3, 5, 3, 5}).ranks == 0);
  CHECK(together({7, 7, 9, 9}, {3, 5, 3, 5}).ranks == Approx(1));
  CHECK(together({1, 2, 1, 2}, {3, 3, 5, 5}).pipelines == Approx(1));
  // The ranks of a job are correlated at least as much as its pipelines.
  CHECK(together({1, 2, 1, 2}, {3, 3, 5, 5}).ranks == Approx(1));
  CHECK(together({2, 2, 1, 1}, {3, 5, 3, 5}).ranks == 0);  // inversely correlated
  CHECK(together({1, 1, 1, 2}, {3, 5, 3, 5}).ranks == Approx(1 / std::sqrt(3)));
  CHECK(together({1, 1, 1, 1}, {1, 1, 1, 1}).ranks == 0);
}

TEST_CASE("A record without differences between steps is rejected", "[sim][jitter]") {
  CHECK(error_of([] { Jitter(record_of({recorded(0, 0, "0F0", {1})})); }) ==
        "1 step is recorded: at least two are needed to see how steps vary");
  CHECK(error_of([] {
          Jitter(record_of({recorded(0, 0, "0F0", {0, 0})}));
        }) == "the recorded operations take no time in any step: there is nothing to sample");
}

}  // namespace jitter_test
