// Tests when a rank is reported as slow, and when not.
#include "pipewright/loop_torch/slow_ranks.hpp"

#include "support/catch.hpp"

namespace slow_ranks_test {

using namespace pipewright;
using loop::Pace;
using loop::PaceOfRank;

/// Ranks whose steps take half a second each, with the given compute times.
class Ranks {
 public:
  explicit Ranks(const std::vector<double>& predicted)
      : ranks_(predicted.begin(), predicted.end()) {}

  void add_steps(int count, const std::vector<double>& compute, double step_s = 0.5) {
    for (int step = 0; step < count; ++step)
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
        ranks_[rank].add_step(compute[rank], step_s);
  }

  std::vector<std::optional<Pace>> paces() const {
    std::vector<std::optional<Pace>> paces;
    for (const PaceOfRank& rank : ranks_) {
      const auto pace = rank.pace();  // through the text that a rank sends to others
      paces.push_back(loop::pace_from_text(pace ? to_text(*pace) : ""));
    }
    return paces;
  }
  std::vector<bool> slow() const { return slow_ranks(paces()); }

 private:
  std::vector<PaceOfRank> ranks_;
};

const std::vector<double> unknown{0, 0, 0}, usual{0.1, 0.2, 0.1};
using Slow = std::vector<bool>;
const Slow nobody{false, false, false};

TEST_CASE("Slow: a rank is reported after five steps that are slower than its earlier ones",
          "[loop]") {
  Ranks ranks(unknown);
  ranks.add_steps(2, {5, 5, 5});  // steps that warm caches
  ranks.add_steps(20, usual);
  CHECK(ranks.slow() == nobody);
  ranks.add_steps(4, {0.1, 0.2, 0.16}, 0.8);
  CHECK(ranks.slow() == nobody);
  ranks.add_steps(1, {0.1, 0.2, 0.16}, 0.8);
  CHECK(ranks.slow() == Slow{false, false, true});
  CHECK(loop::slow_words(2, *ranks.paces()[2]) ==
        "rank 2 is slow: in each of 5 steps it computes for 0.16 s, 1.6 times what it took before; "
        "a step takes 0.8 s, before it took 0.5 s");
  ranks.add_steps(1, usual);
  CHECK(ranks.slow() == nobody);
}

TEST_CASE("Slow: a rank that is slow from the first step on is reported by its prediction",
          "[loop]") {
  Ranks ranks(usual);
  ranks.add_steps(2 + 5, {0.12, 0.24, 0.3});
  CHECK(ranks.slow() == Slow{false, false, true});
  CHECK(loop::slow_words(2, *ranks.paces()[2]) ==
        "rank 2 is slow: in each of 5 steps it computes for 0.3 s, 3.0 times its prediction, which "
        "costs each step up to 0.2 s");
}

TEST_CASE(
    "Slow: no rank is reported if all get slower, if one step is slow, or below the threshold",
    "[loop]") {
  Ranks ranks(usual);
  ranks.add_steps(20, usual);
  ranks.add_steps(20, {0.3, 0.6, 0.4});  // 3, 3 and 4 times
  CHECK(ranks.slow() == nobody);
  Ranks once(usual);
  once.add_steps(20, usual);
  for (int time = 0; time < 10; ++time) {
    once.add_steps(4, {0.1, 2.0, 0.1});
    once.add_steps(1, usual);
    CHECK(once.slow() == nobody);
  }
  Ranks little(usual);
  little.add_steps(20, usual);
  little.add_steps(20, {0.149, 0.2, 0.1});
  CHECK(little.slow() == nobody);
  Ranks alone(std::vector<double>{0.1});  // the cause might be the machine
  alone.add_steps(20, {0.1});
  alone.add_steps(20, {1});
  CHECK(alone.slow() == Slow{false});
}

TEST_CASE("Slow: five steps that last less than a second are not enough", "[loop]") {
  Ranks ranks(unknown);
  ranks.add_steps(20, usual, 0.06);
  ranks.add_steps(16, {0.1, 0.2, 0.4}, 0.06);
  CHECK(ranks.slow() == nobody);
  ranks.add_steps(1, {0.1, 0.2, 0.4}, 0.06);
  CHECK(ranks.slow() == Slow{false, false, true});
}

}  // namespace slow_ranks_test
