// `simulate --engine simgrid` of scenarios that the planner writes, and of variants of them, gives
// the native engine's times.

#include <fmt/format.h>

#include <set>

#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/search/planner/plan_files.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"
#include "pipewright/sim/simgrid/simgrid.hpp"
#include "search/support/drawn_plans.hpp"
#include "sim/support/two_nodes.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/skip.hpp"

namespace planned_scenarios_test {

using namespace pipewright;
using test::PlanDraw;

constexpr std::size_t most_instructions = 12000;  // on all devices, so that the test takes seconds

/// A scenario as `plan -o` writes it, and its costs.
struct Planned {
  plan::Scenario scenario;
  plan::LayerCosts costs;
};

std::optional<Planned> drawn(PlanDraw& draw) {
  test::DrawnSpace drawn = draw.next();
  drawn.space.gpus = std::min(drawn.space.gpus, 32);
  models::PipelineShapes shapes;
  const std::vector<plan::Cut> cuts = search::candidates_of(drawn.cluster, drawn.space, shapes);
  if (cuts.empty())
    return {};
  const plan::Cut cut = draw.one_of(cuts);
  Planned planned{.scenario = search::scenario_of(drawn.cluster, drawn.space.training, cut),
                  .costs = {}};
  planned.costs = models::transformer_costs(planned.scenario.cluster, drawn.space.training, cut);
  return planned;
}

/// Changes everything that durations depend on, within the limits of a scenario.
void vary(PlanDraw& draw, sim::StepCosts& costs, const plan::Program& program) {
  const auto often = [&] { return draw.one_of<int>({0, 0, 1}) == 1; };
  plan::Cluster& cluster = costs.cluster;
  if (draw.one_of<int>({0, 1}) == 1)
    costs.measured.reset();
  if (!costs.measured) {
    cluster.within_node.shared = often();
    cluster.between_nodes.shared = draw.one_of<int>({0, 1}) == 1;
    cluster.within_node.latency = {5e-6};
    cluster.between_nodes.latency = {2e-5};
    if (often())
      cluster.within_node.collective_bandwidth_per_s = cluster.within_node.bandwidth_per_s / 3;
  }
  cluster.devices_per_node = draw.one_of<int>({2, 3, 4, 8});
  if (often())
    cluster.between_nodes.segments = {{.from = {1000}, .time = {1e-3}, .bandwidth_per_s = 1e10}};
  if (often())
    cluster.fabric = {.rails = often(),
                      .levels = {{"leaf",
                                  2,
                                  {.latency = {3e-5},
                                   .bandwidth_per_s = 1e10,
                                   .shared = !costs.measured && often(),
                                   .oversubscription = 3}}}};
  if (often())
    cluster.mixture = {.kinds = {{.nodes = 1, .device = {}, .speed = 0.7},
                                 {.nodes = cluster.nodes - 1, .device = {}, .speed = 1.1}}};
  if (often())
    costs.jitter = 0.1;
  if (often())
    for (int m = 0; m < program.microbatches; ++m)
      costs.microbatch_lengths.push_back(draw.one_of<double>({0.3, 1, 2.5}));
  if (often())
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
      cluster.rank_speeds.push_back(draw.one_of<double>({0.8, 1, 1.3}));
  if (often())
    cluster.between_nodes.overheads.send = cluster.within_node.overheads.sum = {{1e-5}, 1e10};
}

/// Counts of scenarios whose times are equal on both engines, and of those that SimGrid rejects.
struct Agreement {
  int compared = 0, refused = 0;
  int shared = 0;  // those that take longer because links are shared
  std::size_t instructions = 0;
  double largest = 0;  // difference over the iteration
  std::set<std::string> seen;

  void compare(const sim::Structure& structure, const sim::StepCosts& costs) {
    sim::Simulator simulator(structure);
    const double alone = simulator.iteration(costs);
    const sim::Times& native = simulator.run_shared(costs);
    sim::Times simgrid;
    try {
      simgrid = sim::simulate_on_simgrid(structure, costs);
    } catch (const plan::InputError& error) {
      CHECK_THAT(error.what(), Catch::Contains("SimGrid cannot express"));
      CHECK(!costs.contended.empty());
      ++refused;
      return;
    }
    const double difference = test::largest_difference(simgrid, native) / native.iteration;
    CHECK(difference <= 1e-9);
    largest = std::max(largest, difference);
    instructions += native.events.size();
    shared += native.iteration > alone * (1 + 1e-6) ? 1 : 0;
    ++compared;
  }
};

void note(std::set<std::string>& seen, const plan::Scenario& scenario) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  seen.insert(fmt::format("zero {}", scenario.training.zero));
  for (const auto& [name, size] : {std::pair{"pipeline", pipeline.ranks},
                                   {"tensor", pipeline.tensor},
                                   {"replicas", pipeline.replicas},
                                   {"context", pipeline.context},
                                   {"expert", pipeline.expert}})
    if (size > 1)
      seen.insert(name);
}

TEST_CASE(
    "SimGrid gives 300 planned scenarios the native engine's times, instruction by instruction",
    "[sim][simgrid]") {
  if (!sim::built_with_simgrid())
    test::skip("built without SimGrid");
  PlanDraw draw(55);
  Agreement written, varied;
  for (int round = 0; written.compared < 300; ++round) {
    const auto planned = drawn(draw);
    if (!planned)
      continue;
    const sim::ScenarioPlan plan = sim::lay_out(planned->scenario, planned->costs);
    sim::StepCosts costs = plan.costs;
    if (static_cast<std::size_t>(plan.structure->size() * costs.members()) > most_instructions)
      continue;
    const plan::Pipeline& pipeline = planned->scenario.pipeline;
    CAPTURE(round, planned->scenario.name, planned->scenario.cluster.name, pipeline.context,
            pipeline.expert, planned->scenario.training.zero, pipeline.microbatches);
    note(written.seen, planned->scenario);
    written.compare(*plan.structure, costs);
    if (written.compared % 2 == 0)
      continue;
    vary(draw, costs, plan.program());
    CAPTURE(to_json(costs.cluster).dump(), costs.measured.has_value(), costs.jitter);
    if (written.compared % 20 == 1) {
      costs.contended = costs.stages;
      costs.busy_cores = 2;
    }
    varied.compare(*plan.structure, costs);
  }
  CHECK(written.refused == 0);
  CHECK(varied.compared == 135);
  CHECK(varied.refused == 15);
  CHECK(varied.shared > 20);
  for (const char* axis : {"pipeline", "tensor", "replicas", "context", "expert", "zero 0",
                           "zero 1", "zero 2", "zero 3"})
    CHECK(written.seen.contains(axis));
  fmt::print(
      "SimGrid and native agree on {} planned scenarios, {} instructions, and on {} variants, {} "
      "of "
      "them slower by shared links; largest difference {:.1e}\n",
      written.compared, written.instructions, varied.compared, varied.shared,
      std::max(written.largest, varied.largest));
}

}  // namespace planned_scenarios_test
