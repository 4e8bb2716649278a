// Tests when a persistently slow rank gives up its place, and when it stays.
#include "pipewright/loop_torch/permanent_straggler.hpp"

#include "support/catch.hpp"

namespace permanent_straggler_test {

using namespace pipewright;
using loop::Pace;
using loop::PermanentStraggler;
using loop::SlowPlace;

/// A pace of 2 s per step that was 1 s per step before.
const Pace twice_as_slow{.compute_s = 1,
                         .usual_step_s = 1,
                         .step_s = 2,
                         .steps = 5,
                         .prediction = {0.5, 2, 2},
                         .earlier = {0.5, 2, 2}};

/// Rank 2, whose restart takes 10 s.
class Slow {
 public:
  explicit Slow(SlowPlace place, int pipeline_ranks = 4)
      : judge_({.place = place,
                .rank = 2,
                .pipeline_ranks = pipeline_ranks,
                .restart_s = 10,
                .newest_step = [this] { return newest_step; }}) {}

  std::optional<std::string> step(const std::optional<Pace>& slow, int steps_left = 1000) {
    return judge_.end_step(slow, 2, steps_left, [this](const std::string& text) { said += text; });
  }
  /// Returns the number of steps until it ends; 100 if it does not. A checkpoint is written every
  /// seven steps.
  int steps_until_it_ends(const Pace& slow, int steps_left = 1000) {
    for (int step = 1; step < 100; ++step) {
      newest_step = step / 7 * 7;
      if (this->step(slow, steps_left))
        return step;
    }
    return 100;
  }

  int newest_step = 0;
  std::string said;

 private:
  PermanentStraggler judge_;
};

TEST_CASE("Slow for good: it ends with the next checkpoint once it has cost as much as a restart",
          "[loop]") {
  Slow rank(SlowPlace::IsReplaced);
  for (int step = 0; step < 9; ++step) {
    rank.newest_step = step;
    CHECK_FALSE(rank.step(twice_as_slow));
  }
  CHECK_FALSE(rank.step(twice_as_slow));  // the tenth step; from here on a checkpoint ends it
  CHECK_FALSE(rank.step(twice_as_slow));
  rank.newest_step = 11;
  CHECK(rank.step(twice_as_slow) ==
        "rank 2 is slow for good: that has cost 12 s, and a restart takes 10 s");
  CHECK(rank.said.empty());
}

TEST_CASE("Slow for good: a rank that recovers starts over", "[loop]") {
  Slow rank(SlowPlace::IsReplaced);
  for (int step = 0; step < 100; ++step) {
    rank.newest_step = step;
    CHECK_FALSE(rank.step(step % 10 == 9 ? std::nullopt : std::optional(twice_as_slow)));
  }
}

TEST_CASE("Slow for good: it stays if nothing would replace it, or too few steps are left",
          "[loop]") {
  CHECK(Slow(SlowPlace::IsReplaced).steps_until_it_ends(twice_as_slow) == 14);
  CHECK(Slow(SlowPlace::Stays).steps_until_it_ends(twice_as_slow) == 100);
  Slow at_the_end(SlowPlace::IsReplaced);
  CHECK(at_the_end.steps_until_it_ends(twice_as_slow, 10) == 100);
  CHECK(at_the_end.said ==
        "rank 2 is slow for good, and stays: the remaining 10 steps do not make up for a restart, "
        "which takes 10 s");  // reported once
}

TEST_CASE("Slow for good: without a spare it ends if fewer ranks are faster", "[loop]") {
  CHECK(Slow(SlowPlace::IsLeftOut, 4).steps_until_it_ends(twice_as_slow) == 14);
  CHECK(Slow(SlowPlace::IsLeftOut, 3).steps_until_it_ends(twice_as_slow) == 14);
  Slow of_two(SlowPlace::IsLeftOut, 2);  // the other rank would take 2 s as well
  CHECK(of_two.steps_until_it_ends(twice_as_slow) == 100);
  CHECK(of_two.said ==
        "rank 2 is slow for good, and stays: a step takes 2 s with it, and would take 2 s with "
        "pipeline.ranks=1");
  Slow alone(SlowPlace::IsLeftOut, 1);
  CHECK(alone.steps_until_it_ends(twice_as_slow) == 100);
  CHECK(alone.said == "rank 2 is slow for good, and stays: there is no other rank");
}

TEST_CASE("Slow for good: without earlier steps its cost is the compute time beyond the prediction",
          "[loop]") {
  Pace from_the_start = twice_as_slow;  // a step would take 1.5 s
  from_the_start.earlier = {1, 1, 1};
  CHECK(Slow(SlowPlace::IsReplaced).steps_until_it_ends(from_the_start) == 21);
  CHECK(Slow(SlowPlace::IsLeftOut, 4).steps_until_it_ends(from_the_start) == 100);
  CHECK(Slow(SlowPlace::IsLeftOut, 5).steps_until_it_ends(from_the_start) == 21);
}

}  // namespace permanent_straggler_test
