// Fused pairs whose tensor-parallel communication overlaps with compute: the time of a pair, by
// hand and as closed forms, and bounds that stay below it.

#include <algorithm>

#include "pipewright/models/transformer/pipeline_shape.hpp"
#include "pipewright/plan/costs/pair_times.hpp"
#include "pipewright/search/planner/plan_search.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/equal_ranks.hpp"
#include "support/error_of.hpp"

namespace fused_pairs_test {

using namespace pipewright;
using namespace pipewright::test;
using namespace pipewright::models;
using namespace pipewright::search;
using plan::Schedule;
using plan::Seconds;

/// Seconds of one microbatch on a stage: its compute, and its tensor-parallel communication.
struct Pass {
  double compute = 0, shards = 0;
  double all() const { return compute + shards; }
};

plan::StageCost stage_of(const Pass& forward, const Pass& backward) {
  plan::StageCost cost;
  cost.forward = {forward.all()};
  cost.shards = {forward.shards};
  cost.input_gradient = {backward.compute / 2 + backward.shards};
  cost.weight_gradient = {backward.compute / 2};
  cost.backward_shards = {backward.shards};
  return cost;
}

sim::StepCosts costs_of(const Schedule& schedule, const Pass& forward, const Pass& backward,
                        double overlap) {
  sim::StepCosts costs;
  costs.stages.assign(static_cast<std::size_t>(plan::stage_count(schedule)),
                      stage_of(forward, backward));
  costs.cluster.devices_per_node = static_cast<int>(schedule.ranks.size());
  costs.cluster.within_node.bandwidth_per_s = std::numeric_limits<double>::infinity();
  costs.pair_overlap = overlap;
  return costs;
}

double iteration(const Schedule& schedule, const Pass& forward, const Pass& backward,
                 double overlap) {
  const sim::Structure structure(plan::lower(schedule));
  const sim::StepCosts costs = costs_of(schedule, forward, backward, overlap);
  sim::Simulator simulator(structure);
  const double found = simulator.run(costs).iteration;
  CHECK(simulator.iteration(costs) == Approx(found).epsilon(1e-12));
  return found;
}

Schedule unfused(Schedule schedule) {
  for (auto& actions : schedule.ranks)
    for (plan::Action& action : actions)
      action.fused_with_next = false;
  return schedule;
}

TEST_CASE("A pair takes the longer of each one's all-reduces and the other one's compute",
          "[sim]") {
  const auto pair = plan::parse_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n", "pair.csv");
  for (const auto& [forward, backward] : {std::pair<Pass, Pass>{{4, 1}, {8, 2}},
                                          {{1, 5}, {8, 2}},
                                          {{4, 1}, {1, 6}},
                                          {{1, 5}, {2, 6}},
                                          {{0, 3}, {0, 4}},
                                          {{4, 0}, {8, 0}}}) {
    const double alone = forward.all() + backward.all();
    CAPTURE(forward.compute, forward.shards, backward.compute, backward.shards);
    CHECK(iteration(pair, forward, backward, 1) == alone +
                                                       std::max(forward.shards, backward.compute) +
                                                       std::max(backward.shards, forward.compute));
    CHECK(iteration(pair, forward, backward, 0) == 2 * alone);
    CHECK(iteration(unfused(pair), forward, backward, 1) == 2 * alone);
    // In between it is linear.
    CHECK(iteration(pair, forward, backward, 0.25) ==
          0.75 * 2 * alone + 0.25 * iteration(pair, forward, backward, 1));
  }
}

TEST_CASE("Hidden communication is that of the actions that have any", "[sim]") {
  plan::StageCost cost = stage_of({4, 1}, {8, 2});
  cost.rerun.first = {3};
  using plan::Work;
  CHECK(plan::shards_of(Work::Forward, cost) == Seconds{1});
  CHECK(plan::shards_of(Work::Rerun, cost) == Seconds{1});
  CHECK(plan::shards_of(Work::Backward, cost) == Seconds{2});
  CHECK(plan::shards_of(Work::InputGradient, cost) == Seconds{2});
  CHECK(plan::shards_of(Work::WeightGradient, cost) == Seconds{0});
  CHECK(plan::shards_of(Work::OptimizerStep, cost) == Seconds{0});
  const plan::StageCost other = stage_of({0.5, 3}, {1, 1});
  CHECK(plan::overlapped_communication(Work::Backward, cost, Work::Forward, other, 1) ==
        Seconds{0.5});
  CHECK(plan::overlapped_communication(Work::Forward, other, Work::WeightGradient, cost, 0.5) ==
        Seconds{1.5});
  CHECK(plan::overlapped_communication(Work::WeightGradient, cost, Work::Forward, other, 1) ==
        Seconds{0});
}

/// F = I, no shorter than W.
const std::vector<std::pair<Pass, Pass>> dual_pipe_passes{
    {{3, 1}, {6, 1}}, {{2, 2}, {4, 2}}, {{5, 1}, {6, 3}}};

TEST_CASE("DualPipe gains over its own order unfused what M - P - 1 pairs hide, and P/2 - 1 more",
          "[sim][schedule]") {
  for (const auto& [forward, backward] : dual_pipe_passes)
    for (const int p : {2, 4, 8})
      for (const int m : {2 * p, 3 * p, 6 * p}) {
        CAPTURE(p, m, forward.shards, backward.shards);
        const auto schedule = make("dualpipe", p, m);
        const double f = forward.all(), b = backward.all(), w = backward.compute / 2;
        const double hidden =
            std::min(forward.shards, backward.compute) + std::min(backward.shards, forward.compute);
        const double all = m * (f + b), hops = p / 2 - 1;
        CHECK(iteration(unfused(schedule), forward, backward, 1) == all + hops * (f + b - 2 * w));
        CHECK(iteration(schedule, forward, backward, 0) == all + hops * (f + 2 * b - 3 * w));
        // Each hop takes F&B + B - 3W, as in the paper, if F&B overlaps.
        const double fused = iteration(schedule, forward, backward, 1);
        CHECK(fused == all - hidden * (m - p - 1) + hops * (f + 2 * b - hidden - 3 * w));
        CHECK(fused < iteration(unfused(schedule), forward, backward, 1));
      }
}

TEST_CASE("The planner's bound stays below the time of a schedule with pairs", "[sim][planner]") {
  int compared = 0;
  for (const int p : {1, 2, 4})
    for (const int m : {2 * p, 5 * p})
      for (const double overlap : {0.0, 0.5, 1.0})
        for (const auto& [forward, backward] :
             {std::pair<Pass, Pass>{{3, 1}, {6, 2}}, {{0, 4}, {8, 0}}, {{0, 4}, {4, 4}}}) {
          const auto shape = models::pipeline_shape("dualpipev", p, m, 2);
          const auto schedule = make("dualpipev", p, m);
          CAPTURE(p, m, overlap, forward.shards, backward.shards);
          CHECK(shape.fuses);
          CHECK(search::least_iteration(costs_of(schedule, forward, backward, overlap), shape, m) <=
                iteration(schedule, forward, backward, overlap) * (1 + 1e-12));
          ++compared;
        }
  CHECK(compared == 54);
  CHECK_FALSE(models::pipeline_shape("zbv", 2, 4, 2).fuses);
}

TEST_CASE("A scenario's pairs have the overlap of the links between its tensor-parallel ranks",
          "[sim][scenario]") {
  plan::Scenario scenario;
  scenario.pipeline.ranks = 2;
  scenario.pipeline.tensor = 2;
  scenario.cluster.nodes = 2;
  scenario.cluster.devices_per_node = 2;
  scenario.cluster.within_node.tensor_parallel_overlap = 0.25;
  scenario.cluster.between_nodes.tensor_parallel_overlap = 0.5;
  plan::LayerCosts costs;
  costs.layers.resize(4);
  const auto overlap = [&] {
    return sim::step_costs_of(scenario, costs, {{0, 2, 4}}).pair_overlap;
  };
  CHECK(overlap() == 0.25);
  scenario.pipeline.axes = {"tensor", "pipe", "data", "context"};  // a rank on each node
  CHECK(overlap() == 0.5);
}

TEST_CASE("An invalid overlap is rejected", "[sim]") {
  const auto schedule = make("dualpipe", 2, 4);
  const sim::Structure structure(plan::lower(schedule));
  auto costs = costs_of(schedule, {1, 1}, {1, 1}, 1.5);
  CHECK(error_of([&] { sim::require_usable(costs, structure.program()); }) ==
        "the overlap of fused pairs is 1.5: it must be between 0 and 1");
}

}  // namespace fused_pairs_test
