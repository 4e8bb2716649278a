#include "pipewright/plan/costs/layer_costs.hpp"

#include <algorithm>

#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace layer_costs_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

/// Costs in which every field has a different value, so that swapped fields are detected.
LayerCost cost_of(const std::string& name, double scale) {
  LayerCost cost;
  cost.name = name;
  static_cast<LayerTimes&>(cost) = {.forward = {0.1 * scale},
                                    .input_gradient = {0.2 * scale},
                                    .weight_gradient = {0.3 * scale},
                                    .splitting = {0.05 * scale},
                                    .optimizer_step = {0.4 * scale}};
  cost.parameters = {101};
  cost.activation = {102};
  cost.output = {103};
  cost.forward_peak = {104};
  cost.backward_peak = {9'000'000'000'000'000'000};
  cost.saves_input = true;
  cost.saves_output = false;
  cost.output_is_view = true;
  cost.spread = 0.05;
  cost.tied = {99};
  cost.freed_by_input_gradient = {98};
  cost.gradients_for_weights = {96};
  cost.input_gradient_peak = {95};
  cost.weight_gradient_peak = {94};
  cost.forward_peak_without_graph = {93};
  cost.input_for_weights = true;
  cost.output_gradient_for_weights = true;
  cost.selective_activation = {97};
  cost.selective_forward = {0.5 * scale};
  cost.expert_loads = {{2, 1.25}, {4, 1.0 / 3 + 1}};
  cost.contended = {.forward = {0.15 * scale},
                    .input_gradient = {0.25 * scale},
                    .weight_gradient = {0.35 * scale},
                    .splitting = {0.06 * scale},
                    .optimizer_step = {0.45 * scale}};
  return cost;
}

LayerCosts costs() {
  return {.device = "a processor",
          .dtype = "float32",
          .software = "LibTorch 2.11.0",
          .microbatch_size = 4,
          .load = {1e-5 / 3},
          .load_target = {1e-5 / 7},
          .input = {512},
          .target = {513},
          .layers = {cost_of("first", 1.0 / 3), cost_of("second", 1e-9)},
          .loss = cost_of("loss", 7),
          .busy_cores = 3,
          .drift = 0.07,
          .measured_over = {61.5},
          .runtime = RuntimeCost{.name = "torch 2.11.0",
                                 .forward = {1e-4},
                                 .backward = {2e-4},
                                 .input_gradient = {3e-4},
                                 .weight_gradient = {4e-4},
                                 .iteration = {5e-4},
                                 .send = {6e-5},
                                 .send_bandwidth_per_s = 7e9,
                                 .receive = {8e-5},
                                 .receive_bandwidth_per_s = 9e9,
                                 .whole_first_backward = true}};
}

std::string error_in(const Json& json) {
  return error_of([&] { layer_costs_from_json(JsonDocument::parse(json.dump(), "costs.json")); });
}

TEST_CASE("Layer costs read back bit for bit", "[plan][costs]") {
  const auto text = to_json(costs()).dump(2);
  CHECK(layer_costs_from_json(JsonDocument::parse(text, "costs.json")) == costs());
}

TEST_CASE("The compute time of a layer is forward plus backward", "[plan][costs]") {
  LayerCost cost;
  static_cast<LayerTimes&>(cost) = {.forward = {1},
                                    .input_gradient = {2},
                                    .weight_gradient = {4},
                                    .splitting = {},
                                    .optimizer_step = {8}};
  CHECK(compute_time(cost) == Seconds{7});
}

TEST_CASE("Contended costs are the same layers with their contended times", "[plan][costs]") {
  LayerCosts alone = costs();
  const LayerCosts beside = contended(alone);
  CHECK(beside.layers[0].forward == alone.layers[0].contended.forward);
  CHECK(beside.loss.weight_gradient == alone.loss.contended.weight_gradient);
  CHECK(compute_time(beside.layers[0]).value == Approx((0.15 + 0.25 + 0.35 - 0.06) / 3));
  CHECK(beside.layers[0].activation == alone.layers[0].activation);
  alone.busy_cores = 1;  // not measured
  CHECK(contended(alone) == alone);
}

TEST_CASE("A negative time is rejected", "[plan][costs]") {
  Json json = to_json(costs());
  json["layers"][1]["forward_s"] = -1e-3;
  CHECK_THAT(error_in(json),
             Catch::Matchers::EndsWith(
                 "/layers/1/forward_s: -0.001 is not possible: it must be at least 0"));
}

TEST_CASE("Fields that were added later, and the spread, may be omitted", "[plan][costs]") {
  const std::vector<std::string> optional{"spread",
                                          "tied_bytes",
                                          "freed_by_input_gradient_bytes",
                                          "gradients_for_weights_bytes",
                                          "input_gradient_peak_bytes",
                                          "weight_gradient_peak_bytes",
                                          "forward_peak_without_graph_bytes",
                                          "input_for_weights",
                                          "output_gradient_for_weights",
                                          "selective_activation_bytes",
                                          "selective_forward_s",
                                          "splitting_s",
                                          "contended_forward_s",
                                          "contended_input_gradient_s",
                                          "contended_weight_gradient_s",
                                          "contended_splitting_s",
                                          "contended_optimizer_step_s",
                                          "workspace_bytes",
                                          "expert_parameter_bytes",
                                          "tensor_all_reduces",
                                          "expert_all_to_alls",
                                          "context_all_gathers",
                                          "expert_loads"};
  const Json whole = to_json(costs());
  for (const auto& item : whole["layers"][0].items()) {
    Json json = whole;
    json["layers"][0].erase(item.key());
    const std::string error = error_in(json);
    CAPTURE(item.key());
    if (std::find(optional.begin(), optional.end(), item.key()) != optional.end())
      CHECK(error == "no error");
    else
      CHECK_THAT(error, Catch::Matchers::EndsWith("/layers/0: \"" + item.key() + "\" is missing"));
  }
}

TEST_CASE("Costs scale in proportion to the microbatch size, except per-step costs",
          "[plan][costs]") {
  const LayerCosts before = costs();
  const LayerCosts after = scaled_to(before, 3 * before.microbatch_size);
  CHECK(after.microbatch_size == 3 * before.microbatch_size);
  CHECK(after.load.value == 3 * before.load.value);
  CHECK(after.load_target.value == 3 * before.load_target.value);
  CHECK(after.input == before.input * 3);
  CHECK(after.target == before.target * 3);
  const LayerCost& from = before.layers.front();
  const LayerCost& to = after.layers.front();
  for (const auto time : {&LayerTimes::forward, &LayerTimes::input_gradient,
                          &LayerTimes::weight_gradient, &LayerTimes::splitting}) {
    CHECK((to.*time).value == Approx(3 * (from.*time).value));
    CHECK((to.contended.*time).value == Approx(3 * (from.contended.*time).value));
  }
  CHECK(to.selective_forward.value == Approx(3 * from.selective_forward.value));
  for (const auto bytes :
       {&LayerCost::activation, &LayerCost::output, &LayerCost::forward_peak,
        &LayerCost::freed_by_input_gradient, &LayerCost::gradients_for_weights,
        &LayerCost::input_gradient_peak, &LayerCost::weight_gradient_peak,
        &LayerCost::selective_activation, &LayerCost::forward_peak_without_graph})
    CHECK((to.*bytes) == from.*bytes * 3);
  CHECK(to.backward_peak.value == std::numeric_limits<std::int64_t>::max());  // saturated
  CHECK(to.optimizer_step == from.optimizer_step);
  CHECK(to.contended.optimizer_step == from.contended.optimizer_step);
  CHECK(to.parameters == from.parameters);
  CHECK(to.tied == from.tied);
  CHECK(after.loss.forward.value == Approx(3 * before.loss.forward.value));
  CHECK(scaled_to(before, before.microbatch_size) == before);
}

TEST_CASE("A part larger than its whole is rejected", "[plan][costs]") {
  const auto refused = [](const std::string& part, const std::string& message) {
    Json json = to_json(costs());
    json["layers"][0][part] = 102 + 1;
    CHECK_THAT(error_in(json), Catch::Matchers::EndsWith("/layers/0/" + part + ": " + message));
  };
  Json split = to_json(costs());
  split["layers"][0]["splitting_s"] = 1;
  CHECK_THAT(error_in(split),
             Catch::Matchers::Contains("/layers/0/splitting_s: 1 is more than input_gradient_s and "
                                       "weight_gradient_s together"));
  refused("tied_bytes", "103 is more than parameter_bytes, 101, of which it is a part");
  refused("freed_by_input_gradient_bytes",
          "103 is more than activation_bytes, 102, of which it is a part");
  refused("selective_activation_bytes",
          "103 is more than activation_bytes, 102, of which it is a part");
}

TEST_CASE("Expert loads of more than the total are rejected", "[plan][costs]") {
  const auto refused = [](const Json& loads, const std::string& message) {
    Json json = to_json(costs());
    json["layers"][0]["expert_loads"] = loads;
    CHECK_THAT(error_in(json), Catch::Matchers::Contains(message));
  };
  refused({{{"ranks", 2}, {"busiest", 2.5}}}, "of 2 ranks one has 2.5 times the mean");
  refused({{{"ranks", 2}, {"busiest", 0.5}}}, "/layers/0/expert_loads/0/busiest: 0.5");
  refused({{{"ranks", 4}, {"busiest", 1}}, {{"ranks", 2}, {"busiest", 1}}},
          "2 ranks come after 4: their numbers must increase");
}

TEST_CASE("Costs without a layer are rejected", "[plan][costs]") {
  Json json = to_json(costs());
  json["layers"] = Json::array();
  CHECK_THAT(error_in(json), Catch::Matchers::EndsWith("/layers: at least one layer is needed"));
}

}  // namespace layer_costs_test
