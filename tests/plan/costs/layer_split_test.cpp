#include "pipewright/plan/costs/layer_split.hpp"

#include <fmt/format.h>

#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reference.hpp"

namespace layer_split_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

TEST_CASE("Input and output count like layers of the outer stages", "[plan][partition]") {
  CHECK(layer_split(4, 14, 1, 1) == std::vector<int>{3, 4, 4, 3});
  CHECK(layer_split(4, 16, 1, 1) == std::vector<int>{4, 5, 4, 3});
  CHECK(layer_split(2, 2, 1, 1) == std::vector<int>{1, 1});
  CHECK(layer_split(1, 5, 3, 3) == std::vector<int>{5});
}

TEST_CASE("A split that gives an outer stage a negative number of layers is rejected",
          "[plan][partition]") {
  CHECK(error_of([] { layer_split(8, 4, 1, 1); }) ==
        "8 stages asked for, but layers, input and output come to 6");
  CHECK(error_of([] { layer_split(4, 4, 2, 1); }) ==
        "the input weight 2 is more than the 1 layers of a shorter stage");
  CHECK(error_of([] { layer_split(4, 4, 1, 2); }) ==
        "the output weight 2 is more than the 1 layers of a shorter stage");
  CHECK(error_of([] { layer_split(0, 4, 1, 1); }) == "the number of stages is 0, the least is 1");
}

TEST_CASE("Splits and rejections equal torchtitan's", "[plan][partition][reference]") {
  int split = 0, refused = 0;
  for (const Json& peer :
       pipewright::test::reference_cases("partition/torchtitan_layer_split.json")) {
    CAPTURE(peer.dump());
    const auto ours = [&] {
      return layer_split(peer["num_stages"], peer["num_layers"], peer["input_weight"],
                         peer["output_weight"]);
    };
    if (peer.contains("error")) {
      CHECK_THROWS_AS(ours(), InputError);
      ++refused;
    } else {
      CHECK(Json(ours()) == peer["layers_per_stage"]);
      ++split;
    }
  }
  CHECK(split > 0);
  CHECK(refused > 0);
  fmt::print("compared: torchtitan_layer_split.json: {} cases: {} splits, {} rejected by both\n",
             split + refused, split, refused);
}

}  // namespace layer_split_test
