#include "pipewright/plan/costs/expert_loads.hpp"

#include "pipewright/plan/model/transformer_layers.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"
#include "support/catch.hpp"

namespace expert_loads_test {

using namespace pipewright::plan;
using Loads = std::vector<ExpertLoad>;

TEST_CASE(
    "Expert loads are the busiest rank over the mean, for each number of ranks that divides the "
    "experts",
    "[plan][costs]") {
  CHECK(expert_loads({{1, 2, 3, 6, 0, 0}}) == Loads{{2, 1}, {3, 2.25}, {6, 3}});
  CHECK(expert_loads({{8, 0, 0, 0}}) == Loads{{2, 2}, {4, 4}});  // all tokens to one expert
  CHECK(expert_loads({{2, 2, 2, 2}}) == Loads{{2, 1}, {4, 1}});
  CHECK(expert_loads({{0, 0}}) == Loads{{2, 1}});
  CHECK(expert_loads({{7}}).empty());
  CHECK(expert_loads({}).empty());
}

TEST_CASE("Expert loads add up within an all-to-all and are averaged over all-to-alls",
          "[plan][costs]") {
  // One pipeline's tokens go to the first rank, the other's to the second.
  CHECK(expert_loads({{4, 0}, {0, 4}}) == Loads{{2, 1}});
  // A balanced all-to-all, and one with three quarters of the tokens for one rank.
  CHECK(expert_loads({{4, 0}, {0, 4}, {3, 1}, {3, 1}}) == Loads{{2, 1.25}});
}

TEST_CASE("Expert loads that were not measured are assumed equal", "[plan][costs]") {
  LayerCost layer;
  CHECK(busiest_load(layer, 4) == 1);
  layer.expert_loads = {{2, 1.25}, {8, 3}};
  CHECK(busiest_load(layer, 1) == 1);
  CHECK(busiest_load(layer, 2) == 1.25);
  CHECK(busiest_load(layer, 4) == 3);
  CHECK(busiest_load(layer, 16) == 3);
}

/// A model of one layer: a mixture of four experts.
Scenario scenario_of(int expert_ranks) {
  Scenario scenario;
  TransformerShape shape;
  shape.config.layers = 1;
  shape.config.experts = 4;
  shape.config.experts_per_token = 2;
  shape.config.expert_feed_forward = 8;
  shape.config.set_mixture_behind(0);
  scenario.model = shape;
  scenario.pipeline.replicas = 4;
  scenario.pipeline.expert = expert_ranks;
  return scenario;
}

LayerCosts costs_with(const Loads& loads) {
  LayerCosts costs;
  for (int layer = 0; layer < 3; ++layer) {
    LayerCost cost;
    cost.forward = {3}, cost.input_gradient = {4}, cost.weight_gradient = {2};
    cost.contended.forward = {6};
    cost.output = {1000};
    cost.parameters = {1000};
    costs.layers.push_back(cost);
  }
  costs.layers[1].expert_loads = loads;
  return costs;
}

TEST_CASE("Expert loads scale a mixture's expert times and all-to-all bytes to the busiest rank",
          "[plan][scenario]") {
  const auto shape = *scenario_of(1).model.find<TransformerShape>();
  const TransformerLayer counted = layers_of(training_of(shape, 1)).at(1);
  // Each token has two experts, each with two matrices.
  CHECK(counted.expert_flops == 2.0 * 2 * 2 * shape.config.hidden * 8 * shape.sequence);
  const double share = counted.expert_flops / counted.forward_flops();
  CHECK(share > 0);
  CHECK(share < 1);
  const Loads loads{{2, 1.5}, {4, 2.5}};
  for (const auto& [ranks, load] : {std::pair{2, 1.5}, {4, 2.5}}) {
    const LayerCosts even = costs_of_shards(scenario_of(ranks), costs_with({}));
    const LayerCosts uneven = costs_of_shards(scenario_of(ranks), costs_with(loads));
    const double factor = 1 + share * (load - 1);
    CHECK(even.layers[1].forward == Seconds{3});
    CHECK(uneven.layers[1].forward.value == Approx(3 * factor));
    CHECK(uneven.layers[1].input_gradient.value == Approx(4 * factor));
    CHECK(uneven.layers[1].weight_gradient.value == Approx(2 * factor));
    CHECK(uneven.layers[1].contended.forward.value == Approx(6 * factor));
    CHECK(static_cast<double>(uneven.layers[1].expert_all_to_alls.bytes.value) ==
          Approx(static_cast<double>(even.layers[1].expert_all_to_alls.bytes.value) * load));
    CHECK(uneven.layers[0] == even.layers[0]);
  }
  CHECK(costs_of_shards(scenario_of(1), costs_with(loads)) == costs_with(loads));
}

}  // namespace expert_loads_test
