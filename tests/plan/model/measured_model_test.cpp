#include "pipewright/plan/model/measured_model.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/scenario/measured_scenario.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace measured_model_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

Scenario read(const Json& json) {
  return scenario_from_json(JsonDocument::parse(json.dump(), "s.json"));
}

Scenario scenario() {
  LayerCosts costs;
  costs.device = "a processor";
  costs.microbatch_size = 4;
  costs.layers.resize(2);
  costs.layers[0].name = "one";
  costs.layers[0].parameters = {400};
  costs.layers[1].name = "two";
  return measured_scenario(costs, "measured", 2);
}

TEST_CASE("A scenario of measured layers has these layers and reads back as it was written",
          "[plan][model]") {
  const Scenario measured = scenario();
  const Scenario again = read(to_json(measured));
  CHECK(again.model == measured.model);
  CHECK(again.pipeline == measured.pipeline);
  const Model model = model_of(measured);
  REQUIRE(model.layers.size() == 2);
  CHECK(model.layers[0].name == "one");
  CHECK(model.layers[0].parameter_bytes == Bytes{400});
  CHECK(model.layers[1].parameter_bytes == Bytes{});
  CHECK(measured.training.microbatch_size == 4);
  CHECK(measured.pipeline.ranks == 2);
  CHECK(measured.cluster.devices_per_node == 2);
}

TEST_CASE("Measured layers are planned and predicted, not trained", "[plan][model]") {
  CHECK(only_predicted(scenario(), RankTransport::Threads) ==
        std::vector<std::string>{"model.kind=measured"});
}

TEST_CASE("A measured layer without its bytes, or a model without layers, is rejected",
          "[plan][model]") {
  Json json = to_json(scenario());
  json["model"]["layers"][1].erase("parameter_bytes");
  CHECK_THAT(error_of([&] { read(json); }), Catch::Matchers::Contains("parameter_bytes"));
  json["model"]["layers"] = Json::array();
  CHECK_THAT(error_of([&] { read(json); }),
             Catch::Matchers::Contains("at least one layer is needed"));
}

}  // namespace measured_model_test
