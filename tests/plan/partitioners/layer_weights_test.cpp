#include "pipewright/plan/partitioners/layer_weights.hpp"

#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/partitioners/balanced.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace layer_weights_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

Model model_of_kinds(const std::vector<std::string>& kinds) {
  Model model;
  for (const std::string& kind : kinds)
    model.layers.emplace_back().kind = kind;
  return model;
}

const Model gpt = model_of_kinds({"embedding", "transformer-block", "transformer-block",
                                  "transformer-block", "transformer-block", "head"});

std::string method_error(const std::string& method) {
  return error_of([&] { check_partition_method(method); });
}

TEST_CASE("A type weighs the layers of a kind, ignoring case", "[plan][layer_weights]") {
  CHECK(type_weights(gpt, "transformer") == std::vector<double>{0, 1, 1, 1, 1, 0});
  CHECK(type_weights(gpt, "^TRANSFORMER-B") == std::vector<double>{0, 1, 1, 1, 1, 0});
  CHECK(type_weights(gpt, "embedding|head") == std::vector<double>{1, 0, 0, 0, 0, 1});
  CHECK(balanced_boundaries(type_weights(gpt, "block$"), 2) == std::vector<int>{0, 3, 6});
}

TEST_CASE("A pattern that matches nothing, or is invalid, is rejected", "[plan][layer_weights]") {
  CHECK(error_of([] { type_weights(gpt, "conv"); }) ==
        "type:conv matches no layer (possible: embedding, transformer-block or head)");
  CHECK(method_error("type:(").find("type:(: this is not a regular expression") == 0);
}

TEST_CASE("A method is selected by its name", "[plan][layer_weights]") {
  CHECK(method_error("profile") == "no error");
  CHECK(method_error("type:block") == "no error");
  CHECK(method_error("parameter") ==
        "\"parameter\" is not known here, did you mean \"parameters\"? (possible: profile, "
        "parameters, uniform or type:REGEX)");
  CHECK(type_pattern("type:a:b") == "a:b");
  CHECK(type_pattern("profile") == std::nullopt);
}

TEST_CASE("A profile weighs forward and backward, the loss with the last layer",
          "[plan][layer_weights]") {
  LayerCosts costs;
  costs.layers.resize(2);
  costs.layers[0].forward = {1};
  costs.layers[0].weight_gradient = {2};
  costs.layers[1].input_gradient = {4};
  costs.layers[1].parameters = {7};
  costs.loss.forward = {0.5};
  CHECK(profile_weights(costs) == std::vector<double>{3, 4.5});
  CHECK(parameter_weights(costs) == std::vector<double>{0, 7});
}

TEST_CASE("A pattern that is too long or too deep is rejected", "[plan][layer_weights]") {
  CHECK(error_of([] { check_partition_method("type:" + std::string(5000, '(')); }) ==
        "type: the pattern has 5000 letters, the most is 200");
  CHECK(error_of([] { check_partition_method("type:a{99999999999999999999}"); }) ==
        "type:a{99999999999999999999}: 99999999999999999999 is too large a number for a "
        "pattern, which has at most 3 digits");
  CHECK(error_of([] { check_partition_method("type:h100 1000"); }) ==
        "type:h100 1000: 1000 is too large a number for a pattern, which has at most 3 digits");
  CHECK(error_of([] { check_partition_method("type:a{2,100}"); }) == "no error");
  CHECK(error_of([] { check_partition_method("type:" + std::string(200, 'a')); }) == "no error");
}

}  // namespace layer_weights_test
