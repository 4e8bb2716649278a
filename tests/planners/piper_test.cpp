#include <algorithm>
#include <limits>
#include <random>

#include "pipewright/plan/error.hpp"
#include "planners/piper_search.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace piper_test {

using namespace pipewright::planners;
using pipewright::test::error_of;

/// Returns a chain of `nodes` nodes that run on 1 or 2 devices, with and without recomputation.
PiperProblem random_chain(std::mt19937& random, int nodes) {
  std::uniform_real_distribution<double> number(0.5, 2.0);
  PiperProblem problem{.memory_bytes = 5 * number(random),
                       .bandwidth_per_s = 10 * number(random),
                       .devices = 4,
                       .microbatches = 4};
  for (int node = 0; node < nodes; ++node) {
    PiperNode& added = problem.nodes.emplace_back(PiperNode{.name = "n"});
    for (const int tensor : {1, 2}) {
      const double seconds = number(random) / tensor, kept = 2 * number(random) / tensor;
      PiperSplit split{
          .tensor = tensor,
          .parameter_bytes = number(random) / tensor,
          .variants = {{"vanilla", seconds, kept, 1.0 / tensor},
                       {"activation recomp", 1.3 * seconds, 0.3 * kept, 1.2 / tensor}}};
      if (node > 0)
        split.receive_bytes[node - 1] = number(random);
      added.splits.push_back(split);
    }
    if (node > 0)
      problem.edges.push_back({node - 1, node, number(random)});
  }
  return problem;
}

/// Tries every plan.
void try_all(const PiperProblem& problem, int from, std::vector<PiperStage>& stages,
             double& least) {
  const int nodes = static_cast<int>(problem.nodes.size());
  if (from == nodes) {
    try {
      least = std::min(least, piper_seconds(problem, stages));
    } catch (const pipewright::plan::InputError&) {
    }  // too large
    return;
  }
  for (int to = from + 1; to <= nodes; ++to)
    for (const int tensor : {1, 2})
      for (const int data : {1, 2, 4})
        for (int choice = 0; choice < 1 << (to - from); ++choice) {
          PiperStage stage{.tensor = tensor, .data = data};
          for (int node = from; node < to; ++node) {
            stage.nodes.push_back(node);
            stage.variants.push_back(choice >> (node - from) & 1);
          }
          stages.push_back(stage);
          try_all(problem, to, stages, least);
          stages.pop_back();
        }
}

TEST_CASE("Piper: the plan of a small chain is the fastest of all", "[planners]") {
  std::mt19937 random(17);
  int recomputed = 0, infeasible = 0;
  for (int round = 0; round < 60; ++round) {
    const auto problem = random_chain(random, 1 + round % 3);
    std::vector<PiperStage> stages;
    double least = std::numeric_limits<double>::infinity();
    try_all(problem, 0, stages, least);
    CAPTURE(round);
    if (least == std::numeric_limits<double>::infinity()) {
      ++infeasible;
      CHECK_THROWS_AS(piper_plan(problem), pipewright::plan::Infeasible);
      continue;
    }
    const auto plan = piper_plan(problem);
    CHECK(plan.seconds_per_sample == Approx(least).epsilon(1e-11));
    CHECK(piper_seconds(problem, plan.stages) == plan.seconds_per_sample);
    for (const PiperStage& stage : plan.stages)
      recomputed += static_cast<int>(std::count(stage.variants.begin(), stage.variants.end(), 1));
  }
  CHECK(recomputed > 5);
  CHECK(infeasible < 30);
}

TEST_CASE("Piper: a stage is priced by compute, transfers and gradients", "[planners]") {
  const PiperNode first{
      .name = "a",
      .splits = {{.tensor = 1, .parameter_bytes = 8, .variants = {{"vanilla", 6, 10, 5}}}}};
  const PiperNode second{
      .name = "b",
      .splits = {{.tensor = 1, .receive_bytes = {{0, 1}}, .variants = {{"vanilla", 3, 10, 5}}}}};
  PiperProblem problem{.nodes = {first, second},
                       .edges = {{0, 1, 2}},
                       .memory_bytes = 100,
                       .bandwidth_per_s = 2,
                       .devices = 3,
                       .microbatches = 4};
  const std::vector<PiperStage> stages{{.nodes = {0}, .tensor = 1, .data = 2, .variants = {0}},
                                       {.nodes = {1}, .tensor = 1, .data = 1, .variants = {0}}};
  // a: (6 + 2 * 2 / 2) / 2 + 4 * 1 * 8 / 2 / 4 / 2; b: 3 + 2 * (2 + 1) / 2.
  CHECK(piper_seconds(problem, stages) == Approx(6));
  problem.nodes[1].splits[0].variants[0].seconds = 2;
  CHECK(piper_seconds(problem, stages) == Approx(6));  // a
  problem.memory_bytes = 24;                           // a holds 2 of its microbatches
  CHECK(error_of([&] { piper_seconds(problem, stages); }) == "a stage needs 25 bytes of 24");
  problem.memory_bytes = 25;
  problem.devices = 2;
  CHECK(error_of([&] { piper_seconds(problem, stages); }) ==
        "3 devices and 3 copies: there are 2 devices and 4 microbatches");
}

}  // namespace piper_test
