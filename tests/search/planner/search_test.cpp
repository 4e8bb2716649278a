#include "pipewright/search/planner/search.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace search_test {

using namespace pipewright::search;

struct Named {
  std::string name;
  double iteration_s = 0;
  double peak_bytes = 0;
  bool is_possible = true;
  double least_s = 0;
  bool is_bounded_by_memory = true;  // the bound includes the memory
  bool is_likely = true;
};

/// A space whose candidates are listed explicitly, on devices of 10 bytes.
struct WrittenSpace {
  using Plan = Named;
  std::vector<Named> all;
  std::vector<std::string> simulated{};

  std::size_t size() const { return all.size(); }
  double memory() const { return 10; }
  bool is_likely(std::size_t at) const { return all[at].is_likely; }
  double least_peak(std::size_t at) const {
    return all[at].is_bounded_by_memory ? all[at].peak_bytes : 0;
  }
  double least_s(std::size_t at) const { return all[at].least_s; }
  Named price(const Bound& bound, double /*most_s*/) {
    const Named& plan = all[bound.candidate];
    simulated.push_back(plan.name);
    if (!plan.is_possible)
      throw pipewright::plan::Infeasible(plan.name + " is not possible");
    return plan;
  }
};

WrittenSpace written() {
  return {{{.name = "slow", .iteration_s = 9, .peak_bytes = 1, .least_s = 8},
           {.name = "best", .iteration_s = 3, .peak_bytes = 8, .least_s = 2},
           {.name = "deadlock", .is_possible = false, .least_s = 2.5},
           {.name = "lean", .iteration_s = 5, .peak_bytes = 4, .least_s = 4},
           {.name = "huge", .iteration_s = 1, .peak_bytes = 90, .least_s = 1},
           {.name = "large", .iteration_s = 2, .peak_bytes = 11, .least_s = 1.5},
           {.name = "surprise",
            .iteration_s = 2.8,
            .peak_bytes = 12,
            .least_s = 2.6,
            .is_bounded_by_memory = false}}};
}

std::vector<std::string> names_of(const std::vector<Named>& plans) {
  std::vector<std::string> names;
  for (const Named& plan : plans)
    names.push_back(plan.name);
  return names;
}

TEST_CASE(
    "A search simulates the candidates that its bound does not rule out, and counts all of them",
    "[sim][planner]") {
  WrittenSpace space = written();
  const auto answer = search(space, {.most_plans = 1});
  CHECK(names_of(answer.plans) == std::vector<std::string>{"best"});
  CHECK(answer.candidates == 7);
  CHECK(answer.impossible == 1);
  CHECK(answer.why_impossible == "deadlock is not possible");
  CHECK(answer.too_large == 3);  // two by their bounds, one after its simulation
  CHECK(answer.simulated == 1);
  CHECK(answer.bounded == 2);
  REQUIRE(answer.nearest);
  CHECK(answer.nearest->name == "large");
  CHECK(space.simulated == std::vector<std::string>{"best", "deadlock", "surprise", "large"});
}

TEST_CASE("A search that starts with likely candidates has the same answer", "[sim][planner]") {
  WrittenSpace space = written();
  for (Named& plan : space.all)
    plan.is_likely = plan.name == "lean" || plan.name == "large";
  std::vector<std::size_t> decided;
  std::string first;
  const auto answer = search(
      space, {.most_plans = 1, .progress = [&](std::size_t now, std::size_t, const Named* best) {
                decided.push_back(now);
                if (best != nullptr && first.empty())
                  first = best->name;
                return true;
              }});
  CHECK(first == "lean");
  CHECK(names_of(answer.plans) == std::vector<std::string>{"best"});
  CHECK(space.simulated ==
        std::vector<std::string>{"lean", "best", "deadlock", "surprise", "large"});
  CHECK(answer.best_seconds <= answer.seconds);
  CHECK(answer.simulated == 2);
  CHECK(answer.bounded == 1);
  CHECK(answer.too_large == 3);
  CHECK(answer.candidates ==
        answer.simulated + answer.bounded + answer.too_large + answer.impossible);
  CHECK(std::is_sorted(decided.begin(), decided.end()));
  CHECK(decided.back() < answer.candidates);
}

TEST_CASE("A front has the plans that no other one beats in time and memory", "[sim][planner]") {
  WrittenSpace space = written();
  const auto answer = search(space, {.pareto = true});
  CHECK(names_of(answer.plans) == std::vector<std::string>{"best", "lean", "slow"});
  CHECK(answer.bounded == 0);
}

TEST_CASE("If no plan fits, the nearest is the one that needs least memory", "[sim][planner]") {
  WrittenSpace space = written();
  std::erase_if(space.all, [](const Named& plan) {
    return plan.peak_bytes <= 10 || !plan.is_bounded_by_memory;
  });
  const auto answer = search(space, {});
  CHECK(answer.plans.empty());
  REQUIRE(answer.nearest);
  CHECK(answer.nearest->name == "large");
}

TEST_CASE("A search reports how many candidates are decided, and stops on request",
          "[sim][planner]") {
  WrittenSpace space = written();
  std::vector<std::size_t> decided;
  const auto answer =
      search(space, {.progress = [&](std::size_t now, std::size_t all, const Named* best) {
               CHECK(all == 7);
               decided.push_back(now);
               return best == nullptr;
             }});
  CHECK(decided == std::vector<std::size_t>{2, 3});
  CHECK(answer.interrupted);
  CHECK(names_of(answer.plans) == std::vector<std::string>{"best"});
}

}  // namespace search_test
