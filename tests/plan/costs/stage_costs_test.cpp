#include "pipewright/plan/costs/stage_costs.hpp"

#include <limits>

#include "pipewright/plan/costs/usable_costs.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace stage_costs_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

/// A layer with times in seconds and 40 bytes of parameters; its times are scaled by `scale`.
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
  costs.load_target = {0.125};
  costs.input = {7};
  costs.target = {5};
  costs.layers = {timed("a", 1), timed("b", 10), timed("c", 100)};
  costs.loss = timed("loss", 1000);
  costs.loss.parameters = {};
  costs.loss.output = {4};
  return costs;
}

/// Layer "a" saves 10 bytes and outputs 20, "b" saves 5 and outputs 30. They form the first of two
/// stages, so that the loss is not involved.
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
  return stage_costs(costs, Partition{{0, count, count + 1}}).front();
}
StageCost stage_of(const TwoLayers& layers) { return stage_of(std::vector{layers.a, layers.b}); }

TEST_CASE("A stage's times and parameters are the sums of its layers", "[plan][stage_costs]") {
  const auto stages = stage_costs(three_layers(), Partition{{0, 2, 3}});
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
  const auto stages = stage_costs(three_layers(), Partition{{0, 2, 3}});
  CHECK(stages[1].forward == Seconds{1100});
  CHECK(stages[1].input_gradient == Seconds{2200});
  CHECK(stages[1].weight_gradient == Seconds{3300});
  CHECK(stages[1].parameters == Bytes{40});
}

TEST_CASE("The first stage loads inputs, the last one targets", "[plan][stage_costs]") {
  const auto stages = stage_costs(three_layers(), Partition{{0, 1, 2, 3}});
  CHECK(stages[0].load == Seconds{0.25});
  CHECK(stages[1].load == Seconds{0});
  CHECK(stages[2].load == Seconds{0.125});
  CHECK(stages[0].loaded == Bytes{7});
  CHECK(stages[1].loaded == Bytes{0});
  CHECK(stages[2].loaded == Bytes{5});
  const auto alone = stage_costs(three_layers(), Partition{{0, 3}});
  CHECK(alone[0].load == Seconds{0.375});
  CHECK(alone[0].loaded == Bytes{12});
}

TEST_CASE("With read-ahead, a load takes only the reading time beyond the compute",
          "[plan][stage_costs]") {
  LayerCosts costs = three_layers();
  costs.load = {10};  // the first layer takes 1 + 2 + 3 seconds for a microbatch
  const auto stages = stage_costs(costs, Partition{{0, 1, 2, 3}}, {.reads_ahead = true});
  CHECK(stages[0].load == Seconds{4});
  CHECK(stages[1].load == Seconds{0});
  CHECK(stages[2].load == Seconds{0});
  CHECK(stages[0].loaded == Bytes{7});
  costs.reads_on_rank = true;
  CHECK(stage_costs(costs, Partition{{0, 1, 2, 3}}, {.reads_ahead = true})[0].load == Seconds{10});
  costs.reads_on_rank = false;
  costs.layers.front().splitting = {2};  // an unsplit backward takes 3
  CHECK(stage_costs(costs, Partition{{0, 1, 2, 3}}, {.reads_ahead = true})[0].load == Seconds{6});
}

TEST_CASE("A stage sends its last layer's output, and its gradient has the same size",
          "[plan][stage_costs]") {
  LayerCosts costs = three_layers();
  costs.layers[1].output = {60};
  const auto stages = stage_costs(costs, Partition{{0, 2, 3}});
  CHECK(stages[0].output == Bytes{60});
  CHECK(stages[0].input_gradient_bytes == Bytes{0});
  CHECK(stages[1].input_gradient_bytes == Bytes{60});
  CHECK(stages[1].output == Bytes{0});  // the loss is sent nowhere
}

TEST_CASE("A stage keeps its own output, and inner outputs only if a layer saves them",
          "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  CHECK(stage_of(layers).activation == Bytes{10 + 5 + 30});
  layers.b.saves_input = true;
  CHECK(stage_of(layers).activation == Bytes{10 + 20 + 5 + 30});
}

TEST_CASE("A saved output counts once, in the layer's activation", "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.a.saves_output = true;
  layers.b.saves_input = true;
  CHECK(stage_of(layers).activation == Bytes{10 + 5 + 30});
  layers.b.saves_output = true;
  CHECK(stage_of(layers).activation == Bytes{10 + 5});
}

TEST_CASE("A view keeps the memory that it refers to", "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.b.output_is_view = true;
  CHECK(stage_of(layers).activation == Bytes{10 + 20 + 5});  // the stage ends with the view

  LayerCost user;
  user.output = {3};
  CHECK(stage_of(std::vector{layers.a, layers.b, user}).activation == Bytes{10 + 5 + 3});
  user.saves_input = true;
  CHECK(stage_of(std::vector{layers.a, layers.b, user}).activation == Bytes{10 + 20 + 5 + 3});
}

TEST_CASE("The forward's peak includes the running layer's input, saved or not",
          "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  CHECK(stage_of(layers).forward_peak == Bytes{10 + 20 + 50});  // in b
  layers.b.saves_input = true;
  CHECK(stage_of(layers).forward_peak == Bytes{10 + 20 + 50});
  layers.a.forward_peak = {200};
  CHECK(stage_of(layers).forward_peak == Bytes{200});  // in a
}

TEST_CASE("The forward's peak is never below its saved activations", "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.a.forward_peak = {};
  layers.b.forward_peak = {};
  CHECK(stage_of(layers).forward_peak == Bytes{10 + 5 + 30});
}

TEST_CASE("While a layer reads a view, the view's memory is alive", "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.b = LayerCost();
  layers.b.output = {20};
  layers.b.output_is_view = true;
  LayerCost reader;
  reader.output = {4};
  reader.forward_peak = {50};
  CHECK(stage_of(std::vector{layers.a, layers.b, reader}).forward_peak == Bytes{10 + 20 + 50});
}

TEST_CASE("In the backward's peak, later layers are freed and the stage's output remains",
          "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.b.saves_input = true;  // 65 bytes are saved
  // In b: a's saved bytes, its output, b's saved bytes, the stage's output, and 60, without the
  // output's gradient (30), which counts for the next stage: 95, which is 30 above the 65.
  // In a: a's saved bytes, 100, the stage's output: 140, which is 75 above.
  CHECK(stage_of(layers).backward_peak == Bytes{75});
  layers.a.backward_peak = {50};
  CHECK(stage_of(layers).backward_peak == Bytes{30});
}

TEST_CASE("An output that the last layer saves counts once in the backward as well",
          "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.b.activation = {35};  // 5 and the output
  layers.b.saves_output = true;
  // Saved: 10 + 35. In b: 10 + 35 + 60 - 30 is 30 above; in a: 10 + 100 + 30 is 95 above.
  CHECK(stage_of(layers).backward_peak == Bytes{95});
  layers.a.backward_peak = {0};
  CHECK(stage_of(layers).backward_peak == Bytes{30});
}

TEST_CASE("A backward that needs less than the saved activations has no peak",
          "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  layers.a.backward_peak = {};
  layers.b.backward_peak = {30};
  CHECK(stage_of(layers).backward_peak == Bytes{0});
}

TEST_CASE("A partition for another number of layers than the costs is rejected",
          "[plan][stage_costs]") {
  CHECK(error_of([] {
          stage_costs(three_layers(), Partition{{0, 2}});
        }) == "the partition [0, 2] is for 2 layers, but costs are given for 3");
}

/// Costs of a stage under the given training. 40 bytes of parameters in fp32 are 10 parameters.
StageCost trained(const TrainingMemory& training, Bytes parameters = {40}) {
  LayerCosts costs;
  costs.dtype = "float32";
  costs.layers = {timed("a", 1)};
  costs.layers[0].parameters = parameters;
  return stage_costs(costs, Partition{{0, 1}}, training).front();
}

/// Returns bytes of parameters, gradients and optimizer state.
std::vector<std::int64_t> stand(const StageCost& cost) {
  return {cost.parameters.value, cost.gradients.value, cost.optimizer_state.value};
}

using Three = std::vector<std::int64_t>;

LayerCosts three_to_recompute() {
  LayerCosts costs;
  costs.layers = {two_layers().a, two_layers().b, {}};
  costs.layers[0].forward = {1};
  costs.layers[1].forward = {2};
  costs.layers[0].input_gradient = costs.layers[1].input_gradient = {10};
  costs.layers[0].weight_gradient = costs.layers[1].weight_gradient = {20};
  costs.layers[0].freed_by_input_gradient = {4};
  costs.layers[0].selective_activation = {7};
  costs.layers[0].selective_forward = {0.25};
  return costs;
}

StageCost recomputed(RecomputeMode mode) {
  return stage_costs(three_to_recompute(), Partition{{0, 2, 3}}, {.recompute = mode}).front();
}

TEST_CASE("AdamW keeps two values per parameter, SGD with momentum one, SGD none",
          "[plan][stage_costs]") {
  CHECK(stand(trained({})) == Three{40, 40, 80});
  CHECK(stand(trained({.optimizer = Optimizer::SgdMomentum})) == Three{40, 40, 40});
  CHECK(stand(trained({.optimizer = Optimizer::Sgd})) == Three{40, 40, 0});
}

TEST_CASE("Mixed precision takes 2, 2 and 12 bytes per parameter under AdamW",
          "[plan][stage_costs]") {
  const auto mixed = [](Optimizer optimizer) {
    return stand(trained({.optimizer = optimizer, .precision = Precision::Mixed}));
  };
  CHECK(mixed(Optimizer::AdamW) == Three{20, 20, 120});
  CHECK(mixed(Optimizer::SgdMomentum) == Three{20, 20, 80});
  CHECK(mixed(Optimizer::Sgd) == Three{20, 20, 40});
}

TEST_CASE("Mixed precision of an unknown type is rejected", "[plan][stage_costs]") {
  LayerCosts costs = three_layers();
  costs.dtype = "int8";
  CHECK(error_of([&] {
          stage_costs(costs, Partition{{0, 3}}, {.precision = Precision::Mixed});
        }) ==
        "mixed precision needs to know how many parameters there are, but costs are for the "
        "type \"int8\" (possible: float64, float32, float16 or bfloat16)");
}

TEST_CASE("ZeRO-1 shards the optimizer's state and its step", "[plan][stage_costs]") {
  for (const int shards : {1, 2, 3, 4, 7, 64}) {
    const StageCost plain = trained({});
    const StageCost full = trained({.shards = shards});
    CAPTURE(shards);
    CHECK(stand(full) == Three{40, 40, (80 + shards - 1) / shards});
    CHECK(full.optimizer_step.value == Approx(plain.optimizer_step.value / shards));
    CHECK(stand(trained({.precision = Precision::Mixed, .shards = shards})) ==
          Three{20, 20, (120 + shards - 1) / shards});
  }
}

TEST_CASE("ZeRO-2 also shards the stored gradients, and ZeRO-3 the parameters",
          "[plan][stage_costs]") {
  const StageCost cost = trained({.zero = 2, .shards = 3});
  CHECK(stand(cost) == Three{40, 40, 27});
  CHECK(standing_gradients(cost) == Bytes{14});
  CHECK(standing(cost) == Bytes{40 + 14 + 27});
  CHECK(standing_parameters(cost) == Bytes{40});
  const StageCost three = trained({.zero = 3, .shards = 3});
  CHECK(stand(three) == Three{40, 40, 27});
  CHECK(standing(three) == Bytes{14 + 14 + 27});
  CHECK(standing_gradients(trained({.zero = 1, .shards = 3})) == Bytes{40});
}

TEST_CASE("A stage holds a weight shared by its layers once", "[plan][stage_costs]") {
  LayerCosts costs = three_layers();
  costs.layers[0].tied = {30};
  costs.layers[2].tied = {30};
  const auto apart = stage_costs(costs, Partition{{0, 2, 3}});
  CHECK(apart[0].parameters == Bytes{80});
  CHECK(apart[0].tied == Bytes{30});
  CHECK(apart[1].tied == Bytes{30});
  const auto together = stage_costs(costs, Partition{{0, 3}});
  CHECK(stand(together[0]) == Three{90, 90, 180});
  CHECK(together[0].tied == Bytes{30});
}

TEST_CASE("Without recomputation a stage's costs do not change", "[plan][stage_costs]") {
  const StageCost plain = recomputed(RecomputeMode::None);
  CHECK(plain.activation == Bytes{10 + 5 + 30});
  CHECK(plain.freed_by_input_gradient == Bytes{4});
  CHECK(plain.input_gradient == Seconds{20});
  CHECK(plain.rerun == rerun_at_once(plain));  // if the Program has an R
  CHECK(plain.rerun.first == Seconds{3});
  CHECK(plain.rerun.recomputed_bytes == Bytes{10 + 5 + 30});
}

TEST_CASE("Full recomputation keeps each layer's input and reruns its forward",
          "[plan][stage_costs]") {
  const StageCost full = recomputed(RecomputeMode::Full), plain = recomputed(RecomputeMode::None);
  CHECK(full.activation == plain.activation);  // of a microbatch without recomputation
  CHECK(full.input_gradient == plain.input_gradient);
  CHECK(full.rerun.first + full.rerun.others == Seconds{3});
  CHECK(full.rerun.kept == Bytes{20});                  // b's input, without the stage's output
  CHECK(full.rerun.recomputed_bytes == Bytes{5 + 30});  // by R: b, and the stage's output again
  CHECK(full.rerun.freed_by_input_gradient == Bytes{0});
  // In b: 20, the stage's output, what b recomputes (5 + 30), and 60 more, without the output's
  // gradient (30), which counts for the next stage: 115, which is 30 above the 50 and the 35.
  // In a: what a recomputes (10 + 20), 100 more, the stage's output: 160, which is 75 above.
  CHECK(full.rerun.backward_peak == Bytes{75});
  // A separate input gradient leaves all of a except the 4 bytes that it frees.
  CHECK(full.rerun.left_for_weights == Bytes{10 - 4});
}

TEST_CASE("A forward that will be recomputed builds no autograd graph", "[plan][stage_costs]") {
  // In addition to a's output of 20, b needs 50 with an autograd graph, and less without.
  CHECK(recomputed(RecomputeMode::Full).rerun.forward_peak == Bytes{20 + 50});
  LayerCosts costs = three_to_recompute();
  costs.layers[0].forward_peak_without_graph = {35};
  costs.layers[1].forward_peak_without_graph = {33};
  const auto stages = stage_costs(costs, Partition{{0, 2, 3}}, {.recompute = RecomputeMode::Full});
  CHECK(stages[0].rerun.forward_peak == Bytes{20 + 33});
}

TEST_CASE("The last layer takes the first part of an action that recomputes layers",
          "[plan][stage_costs]") {
  // Each layer's backward takes 10 and 20 s; the recomputation of a within it takes 1 s.
  const RecomputeCost rerun = recomputed(RecomputeMode::Full).rerun;
  CHECK(rerun.backward_share == Approx(30.0 / 61));
  CHECK(rerun.input_gradient_share == Approx(10.0 / 21));
  CHECK(rerun.weight_gradient_share == Approx(0.5));
}

TEST_CASE("The gradient of a stage's output counts for the next stage", "[plan][stage_costs]") {
  TwoLayers layers = two_layers();
  for (LayerCost* layer : {&layers.a, &layers.b}) {
    layer->output_gradient_for_weights = true;
    layer->gradients_for_weights = layer->output + Bytes{3};
  }
  layers.a.input_for_weights = true;
  const StageCost stage = stage_of(layers);
  CHECK(stage.gradients_for_weights == Bytes{20 + 3 + 3});
  CHECK(stage.output_gradient_for_weights);
  CHECK(stage.input_for_weights);
  CHECK(stage.output_alone == Bytes{30});
  // Freed and left bytes were measured as one difference: 30 less 28 were freed.
  layers.b.gradients_for_weights = {28};
  CHECK(stage_of(layers).gradients_for_weights == Bytes{20 + 3});
  CHECK(stage_of(layers).freed_by_input_gradient == Bytes{30 - 28});
}

TEST_CASE("Selective recomputation drops and recomputes the attention core",
          "[plan][stage_costs]") {
  const StageCost selective = recomputed(RecomputeMode::Selective);
  CHECK(selective.activation == Bytes{10 - 7 + 5 + 30});
  CHECK(selective.freed_by_input_gradient == Bytes{0});  // its 4 bytes are among the 7
  CHECK(selective.input_gradient == Seconds{20.25});
  CHECK(selective.weight_gradient == Seconds{40});
  // In a: 3 saved, 100 + 7 more, the stage's output 30: 140, which is 102 above the 38.
  CHECK(selective.backward_peak == Bytes{102});
}

TEST_CASE("The loss is recomputed with the last layer", "[plan][stage_costs]") {
  LayerCosts costs = three_layers();
  costs.layers[2].forward = {7};
  costs.loss.forward = {2};
  costs.loss.activation = {6};
  const auto stages = stage_costs(costs, Partition{{0, 2, 3}}, {.recompute = RecomputeMode::Full});
  CHECK(stages[1].rerun.first == Seconds{7 + 2});
  CHECK(stages[1].rerun.others == Seconds{0});
  CHECK(stages[1].rerun.recomputed_bytes == stages[1].activation);  // last layer and loss
}

TEST_CASE("All costs that are not valid durations or sizes are rejected together",
          "[plan][stage_costs]") {
  LayerCosts costs = three_layers();
  costs.layers[0].forward = {std::numeric_limits<double>::quiet_NaN()};
  costs.layers[1].weight_gradient = {-1};
  costs.layers[2].activation = {-5};
  CHECK(error_of([&] {
          require_usable(costs, Partition{{0, 2, 3}}, true);
        }) ==
        "the costs cannot be used: layer a: its forward_s is nan, which is not a duration; layer "
        "b: its weight_gradient_s is -1, which is not a duration; layer c: its activation_bytes is "
        "-5, which is negative");
  CHECK_NOTHROW(require_usable(three_layers(), Partition{{0, 2, 3}}, true));
}

TEST_CASE("A stage that takes no time is rejected, a layer that takes none is not",
          "[plan][stage_costs]") {
  LayerCosts costs = three_layers();
  costs.layers[0].forward = {};
  const auto check = [&](std::vector<int> boundaries, bool training) {
    return error_of([&] { require_usable(costs, Partition{std::move(boundaries)}, training); });
  };
  CHECK(check({0, 2, 3}, true) == "no error");
  CHECK(check({0, 1, 3}, true) ==
        "the costs cannot be used: stage 0 (a): the forward would take no time at all");
  costs.layers[1].forward = {};
  costs.layers[0].input_gradient = costs.layers[1].input_gradient = {};
  costs.layers[0].weight_gradient = costs.layers[1].weight_gradient = {};
  CHECK(check({0, 2, 3}, true) ==
        "the costs cannot be used: stage 0 (a .. b): the forward and the backward would take no "
        "time at all");
  costs.layers[0].forward = {1};
  CHECK(check({0, 2, 3}, true) ==
        "the costs cannot be used: stage 0 (a .. b): the backward would take no time at all");
  CHECK(check({0, 2, 3}, false) == "no error");  // an inference has no backward
}

}  // namespace stage_costs_test
