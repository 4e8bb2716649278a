#include "pipewright/plan/model/model.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/alexnet_model.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace model_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

std::vector<std::int64_t> parameter_counts(const Model& model) {
  std::vector<std::int64_t> counts;
  for (const Layer& layer : model.layers)
    counts.push_back(layer.parameters);
  return counts;
}

double total_flops(const Model& model) {
  double sum = 0;
  for (const Layer& layer : model.layers)
    sum += layer.forward_flops;
  return sum;
}

Model again(const Model& model) {
  return model_from_json(JsonDocument::parse(to_json(model).dump(2), "model.json"));
}

TEST_CASE("AlexNet's 22 layers have torchvision's parameter counts", "[plan][model]") {
  const Model model = alexnet_model({.classes = 10, .image_size = 224});
  CHECK(parameter_counts(model) ==
        std::vector<std::int64_t>{23296, 0, 0, 307392, 0, 0,        663936, 0, 884992,   0, 590080,
                                  0,     0, 0, 0,      0, 37752832, 0,      0, 16781312, 0, 40970});
  CHECK(model.layers.front().name == "conv1");
  CHECK(model.layers.back().name == "linear3");
}

TEST_CASE("AlexNet at 224 has torchvision's shapes and 0.71 G multiply-adds", "[plan][model]") {
  const Model model = alexnet_model({.classes = 1000, .image_size = 224});
  CHECK(model.layers[0].output_shape == std::vector<int>{64, 55, 55});
  CHECK(model.layers[2].output_shape == std::vector<int>{64, 27, 27});
  CHECK(model.layers[5].output_shape == std::vector<int>{192, 13, 13});
  CHECK(model.layers[12].output_shape == std::vector<int>{256, 6, 6});
  CHECK(model.layers[14].output_shape == std::vector<int>{9216});
  CHECK(model.layers[21].output_shape == std::vector<int>{1000});
  CHECK(total_flops(model) == 2.0 * 714188480);
}

TEST_CASE("AlexNet's smallest image leaves one pixel for the average pooling", "[plan][model]") {
  const Model model = alexnet_model({.classes = 10, .image_size = 63});
  CHECK(model.layers[12].output_shape == std::vector<int>{256, 1, 1});
  CHECK(model.layers[13].output_shape == std::vector<int>{256, 6, 6});
}

TEST_CASE("A GPT is an embedding, its blocks, and norm and head", "[plan][model]") {
  const Model model =
      gpt_model({.blocks = 2, .hidden = 8, .heads = 2, .sequence = 16, .vocabulary = 256});
  REQUIRE(model.layers.size() == 4);
  CHECK(model.layers[0].name == "embedding");
  CHECK(model.layers[2].name == "block1");
  CHECK(model.layers[3].kind == "norm-and-head");
  // Blocks of width h: 12h² weights and 13h biases and norms.
  CHECK(parameter_counts(model) == std::vector<std::int64_t>{(256 + 16) * 8, 12 * 64 + 13 * 8,
                                                             12 * 64 + 13 * 8, 16 + 8 * 256 + 256});
  CHECK(model.layers[1].parameter_bytes == Bytes{4 * (12 * 64 + 13 * 8)});
  CHECK(model.layers[1].forward_flops == 24.0 * 16 * 64 + 4.0 * 16 * 16 * 8);
  CHECK(model.layers[3].forward_flops == 2.0 * 16 * 8 * 256);
  CHECK(model.layers[3].output_shape == std::vector<int>{16, 256});
}

TEST_CASE("A model reads back as it was written", "[plan][model]") {
  Model model = gpt_model({});
  model.layers[0].tied_key = "tokens";
  model.layers[1].dtype = "bfloat16";
  model.layers[2].forward_flops = 0.1 + 0.2;
  CHECK(again(model) == model);
  CHECK(again(alexnet_model({})) == alexnet_model({}));
}

TEST_CASE("All errors of a model file are reported together", "[plan][model]") {
  const auto read = [](const std::string& text) {
    return error_of([&] { model_from_json(JsonDocument::parse(text, "model.json")); });
  };
  CHECK(read(R"({"format": "pipewright/model/1", "name": "m", "layers": []})") ==
        "model.json:1:47: /layers: at least one layer is needed");
  CHECK(read(R"({"format": "pipewright/model/1", "name": "m", "layers": [
{"name": "a", "kind": "k", "parameters": -1, "parameter_bytes": 0, "forward_flops": 0,
 "output_shape": [4]},
{"name": "b", "kind": "k", "parameters": 1, "parameter_byte": 4, "forward_flops": 0,
 "output_shape": [4]}]})") ==
        "model.json:2:28: /layers/0/parameters: -1 is not possible: it must be at least 0\n"
        "model.json:4:1: /layers/1: \"parameter_bytes\" is missing\n"
        "model.json:4:45: /layers/1/parameter_byte: unknown key \"parameter_byte\", did you mean "
        "\"parameter_bytes\"?");
}

}  // namespace model_test
