#include "pipewright/plan/stage_costs.hpp"

#include "support/catch.hpp"
#include "support/error_of.hpp"

using namespace pipewright::plan;
using pipewright::test::error_of;

namespace {

/// Times in seconds and 40 bytes of parameters; every layer takes `scale` times as long.
LayerCost timed(const char* name, double scale) {
  LayerCost layer;
  layer.name = name;
  layer.forward = {1 * scale};
  layer.input_gradient = {2 * scale};
  layer.weight_gradient = {3 * scale};
  layer.optimizer_step = {0.5 * scale};
  layer.parameters = {40};
  layer.output = {100};
  return layer;
}

LayerCosts three_layers() {
  LayerCosts costs;
  costs.load = {0.25};
  costs.input = {7};
  costs.target = {5};
  costs.layers = {timed("a", 1), timed("b", 10), timed("c", 100)};
  costs.loss = timed("loss", 1000);
  costs.loss.parameters = {};
  costs.loss.output = {4};
  return costs;
}

/// "a" keeps 10 bytes and puts out 20, "b" keeps 5 and puts out 30. They are the first of two
/// stages, so that no loss comes in.
struct TwoLayers {
  LayerCost a;
  LayerCost b;
};
TwoLayers two_layers() {
  TwoLayers layers;
  layers.a.activation = {10};
  layers.a.output = {20};
  layers.a.forward_peak = {40};
  layers.a.backward_peak = {100};
  layers.b.activation = {5};
  layers.b.output = {30};
  layers.b.forward_peak = {50};
  layers.b.backward_peak = {60};
  return layers;
}

StageCost stage_of(std::vector<LayerCost> layers) {
  LayerCosts costs;
  const auto count = static_cast<int>(layers.size());
  costs.layers = std::move(layers);
  costs.layers.push_back({});  // the last stage
  return stage_costs(costs, one_stage_per_rank({0, count, count + 1})).front();
}
StageCost stage_of(const TwoLayers& layers) { return stage_of(std::vector{layers.a, layers.b}); }

}  // namespace

TEST_CASE("A stage's times and parameters are the sums of its layers", "[plan][stage_costs]") {
  const auto stages = stage_costs(three_layers(), one_stage_per_rank({0, 2, 3}));
  REQUIRE(stages.size() == 2);
  CHECK(stages[0].forward == Seconds{11});
  CHECK(stages[0].input_gradient == Seconds{22});
  CHECK(stages[0].weight_gradient == Seconds{33});
  CHECK(stages[0].optimizer_step == Seconds{5.5});
  CHECK(stages[0].parameters == Bytes{80});
  CHECK(stages[0].gradients == Bytes{80});         // as large as the parameters
  CHECK(stages[0].optimizer_state == Bytes{160});  // AdamW: two moments
}

TEST_CASE("The loss runs on the last stage", "[plan][stage_costs]") {
  const auto stages = stage_costs(three_layers(), one_stage_per_rank({0, 2, 3}));
  CHECK(stages[1].forward == Seconds{1100});
  CHECK(stages[1].input_gradient == Seconds{2200});
  CHECK(stages[1].weight_gradient == Seconds{3300});
  CHECK(stages[1].parameters == Bytes{40});
}

TEST_CASE("The first stage loads inputs, the last one targets", "[plan][stage_costs]") {
  const auto stages = stage_costs(three_layers(), one_stage_per_rank({0, 1, 2, 3}));
  CHECK(stages[0].load == Seconds{0.25});
  CHECK(stages[1].load == Seconds{0});
  CHECK(stages[2].load == Seconds{0});
  CHECK(stages[0].loaded == Bytes{7});
  CHECK(stages[1].loaded == Bytes{0});
  CHECK(stages[2].loaded == Bytes{5});
  const auto alone = stage_costs(three_layers(), one_stage_per_rank({0, 3}));
  CHECK(alone[0].loaded == Bytes{12});
}

TEST_CASE("What a stage sends is its last layer's output, and as much comes back",
          "[plan][stage_costs]") {
  LayerCosts costs = three_layers();
  costs.layers[1].output = {60};
  const auto stages = stage_costs(costs, one_stage_per_rank({0, 2, 3}));
  CHECK(stages[0].output == Bytes{60});
  CHECK(stages[0].input_gradient_bytes == Bytes{0});
  CHECK(stages[1].input_gradient_bytes == Bytes{60});
  CHECK(stages[1].output == Bytes{0});  // the loss is sent nowhere
}

TEST_CASE("A stage keeps its own output; one inside only if a layer saves it",
          "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  CHECK(stage_of(layers).activation == Bytes{10 + 5 + 30});
  layers.b.saves_input = true;
  CHECK(stage_of(layers).activation == Bytes{10 + 20 + 5 + 30});
}

TEST_CASE("A layer that saves its output counts it in its activation, once",
          "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.a.saves_output = true;
  layers.b.saves_input = true;
  CHECK(stage_of(layers).activation == Bytes{10 + 5 + 30});
  layers.b.saves_output = true;
  CHECK(stage_of(layers).activation == Bytes{10 + 5});
}

TEST_CASE("A view keeps the memory that it shows", "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.b.output_is_view = true;
  CHECK(stage_of(layers).activation == Bytes{10 + 20 + 5});  // the stage ends with the view

  LayerCost user;
  user.output = {3};
  CHECK(stage_of(std::vector{layers.a, layers.b, user}).activation == Bytes{10 + 5 + 3});
  user.saves_input = true;
  CHECK(stage_of(std::vector{layers.a, layers.b, user}).activation == Bytes{10 + 20 + 5 + 3});
}

TEST_CASE("The forward's peak has the running layer's input in it, kept or not",
          "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  CHECK(stage_of(layers).forward_peak == Bytes{10 + 20 + 50});  // in b
  layers.b.saves_input = true;
  CHECK(stage_of(layers).forward_peak == Bytes{10 + 20 + 50});
  layers.a.forward_peak = {200};
  CHECK(stage_of(layers).forward_peak == Bytes{200});  // in a
}

TEST_CASE("The forward's peak is never below what the forward keeps", "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.a.forward_peak = {};
  layers.b.forward_peak = {};
  CHECK(stage_of(layers).forward_peak == Bytes{10 + 5 + 30});
}

TEST_CASE("While a layer reads a view, the memory behind it is alive", "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.b = LayerCost();
  layers.b.output = {20};
  layers.b.output_is_view = true;
  LayerCost reader;
  reader.output = {4};
  reader.forward_peak = {50};
  CHECK(stage_of(std::vector{layers.a, layers.b, reader}).forward_peak == Bytes{10 + 20 + 50});
}

TEST_CASE("The backward's peak: later layers have freed, the stage's output stays",
          "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.b.saves_input = true;  // 65 bytes are kept
  // In b: kept by a, its output, kept by b, the stage's output, and 60, of which the output's
  // gradient (30) is on the account of the stage after: 95, which is 30 above the 65.
  // In a: kept by a, 100, the stage's output: 140, which is 75 above.
  CHECK(stage_of(layers).backward_peak == Bytes{75});
  layers.a.backward_peak = {50};
  CHECK(stage_of(layers).backward_peak == Bytes{30});
}

TEST_CASE("An output that the last layer saves is alive in the backward once, too",
          "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.b.activation = {35};  // 5 and the output
  layers.b.saves_output = true;
  // Kept: 10 + 35. In b: 10 + 35 + 60 - 30 is 30 above; in a: 10 + 100 + 30 is 95 above.
  CHECK(stage_of(layers).backward_peak == Bytes{95});
  layers.a.backward_peak = {0};
  CHECK(stage_of(layers).backward_peak == Bytes{30});
}

TEST_CASE("A backward that needs less than was kept has no peak", "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.a.backward_peak = {};
  layers.b.backward_peak = {30};
  CHECK(stage_of(layers).backward_peak == Bytes{0});
}

TEST_CASE("A partition of another number of layers than the costs is refused",
          "[plan][stage_costs]") {
  CHECK(error_of([] {
          stage_costs(three_layers(), one_stage_per_rank({0, 2}));
        }) == "the partition [0, 2] is for 2 layers, but costs are given for 3");
}
