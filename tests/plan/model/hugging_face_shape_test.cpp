// Hugging Face folders as the model of a scenario: which settings of config.json are read, in
// either style, and which are rejected; and small folders of large models.

#include "pipewright/plan/model/hugging_face_shape.hpp"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/small_folder.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace hugging_face_shape_test {

using namespace pipewright::plan;
using pipewright::test::error_of;
using pipewright::test::TempFolder;

Json llama() {
  return {{"model_type", "llama"},    {"hidden_size", 32},
          {"num_hidden_layers", 2},   {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"intermediate_size", 40},
          {"vocab_size", 61},         {"max_position_embeddings", 64}};
}

HuggingFaceModel read(const Json& config) {
  return hugging_face_model(JsonDocument::parse(config.dump(), "config.json"));
}

Json with(Json config, const Json& more) {
  config.update(more);
  return config;
}

TEST_CASE("Both styles of config.json give the same rotary embeddings", "[plan][model]") {
  const Json scaling{{"rope_type", "llama3"},
                     {"factor", 8.0},
                     {"low_freq_factor", 1.0},
                     {"high_freq_factor", 4.0},
                     {"original_max_position_embeddings", 16}};
  const auto four = read(with(llama(), {{"rope_theta", 5e5}, {"rope_scaling", scaling}}));
  const auto five =
      read(with(llama(), {{"rope_parameters", with(scaling, {{"rope_theta", 5e5}})}}));
  CHECK(four == five);
  CHECK(four.config.rotary.base == 5e5);
  CHECK(four.config.rotary.scaling == RotaryScaling::Llama3);
  CHECK(four.config.rotary.factor == 8);
  CHECK(four.config.rotary.longest == 16);
  CHECK(read(llama()).config.rotary == Rotary{});
}

TEST_CASE("YaRN's magnitude is derived from its factor or read from the file", "[plan][model]") {
  const Json yarn{{"type", "yarn"}, {"factor", 8.0}, {"original_max_position_embeddings", 8}};
  CHECK(read(with(llama(), {{"rope_scaling", yarn}})).config.rotary.magnitude ==
        Approx(0.1 * std::log(8.0) + 1));
  CHECK(read(with(llama(), {{"rope_scaling", with(yarn, {{"attention_factor", 1.5}})}}))
            .config.rotary.magnitude == 1.5);
}

TEST_CASE("Settings of a config that cannot be trained are named with their values",
          "[plan][model]") {
  const auto model =
      read(with(llama(), {{"hidden_act", "relu"},
                          {"attention_dropout", 0.25},
                          {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}},
                          {"quantization_config", {{"bits", 4}}}}));
  CHECK(model.untrained == std::vector<std::string>{R"("quantization_config": {"bits":4})",
                                                    R"("hidden_act": "relu")",
                                                    R"("rope_scaling/rope_type": "dynamic")"});
  CHECK(model.dropouts == std::vector<std::string>{R"("attention_dropout": 0.25)"});
  CHECK(read(llama()).untrained.empty());
}

TEST_CASE("Unknown architectures are rejected with the nearest known one", "[plan][model]") {
  const std::string error = error_of([] { read(with(llama(), {{"model_type", "gemma3"}})); });
  CHECK(error.find("config.json") == 0);
  CHECK(error.find("did you mean") != std::string::npos);
  CHECK(error.find("gemma3_text") != std::string::npos);
}

Json scenario_of(const std::string& path) {
  Scenario scenario;
  scenario.name = "folder";
  scenario.model = TransformerShape{};
  scenario.data = {.kind = "tokens", .path = "tokens.bin"};
  scenario.cluster.name = "c";
  scenario.cluster.device.name = "cpu";
  scenario.cluster.within_node.bandwidth_per_s = 1e12;
  Json json = to_json(scenario);
  json["model"] = {{"kind", "hf"}, {"path", path}, {"sequence", 16}};
  return json;
}

TEST_CASE("A scenario reads a model folder next to its file", "[plan][model]") {
  const TempFolder folder;
  std::filesystem::create_directory(folder.path() / "model");
  folder.write("model/config.json", llama().dump());
  const auto file = folder.write("scenario.json", scenario_of("model").dump());
  const Scenario scenario = scenario_from_json(JsonDocument::read(file));
  const auto& shape = scenario.model.as<HuggingFaceShape>();
  CHECK(shape.path == (folder.path() / "model").string());
  CHECK(shape.transformer.config.hidden == 32);
  REQUIRE(transformer_of(scenario.model) == &shape.transformer);
  CHECK(model_of(scenario.model).layers.size() == 4);
  CHECK(scenario_from_json(JsonDocument::parse(to_json(scenario).dump(), "s.json")) == scenario);
}

TEST_CASE("A folder without a valid config.json is rejected at the scenario's field",
          "[plan][model]") {
  const TempFolder folder;
  const auto file = folder.write("scenario.json", scenario_of("model").dump());
  const auto refusal = [&] {
    return error_of([&] { scenario_from_json(JsonDocument::read(file)); });
  };
  CHECK(refusal().find("model/config.json") != std::string::npos);
  std::filesystem::create_directory(folder.path() / "model");
  Json broken = llama();
  broken.erase("vocab_size");
  folder.write("model/config.json", broken.dump());
  CHECK(refusal().find("\"vocab_size\" is missing") != std::string::npos);
  CHECK(refusal().find("/model/path") != std::string::npos);
}

TEST_CASE("Small folders scale down the large model's sizes", "[plan][model]") {
  std::size_t made = 0;
  for (const std::string& name : known_folders()) {
    INFO(name);
    const Json large = small_config(name, {}), small = small_config(name, {4, 512, 1000});
    const auto big = read(large).config, little = read(small).config;
    CHECK(little.layers == 4);
    CHECK(little.hidden == 512);
    CHECK(little.vocabulary == 1000);
    CHECK(little.heads % little.kv_heads == 0);
    CHECK(read(small).type == read(large).type);
    CHECK(1.0 * little.feed_forward / 512 ==
          Approx(1.0 * big.feed_forward / big.hidden).margin(0.02));
    CHECK(parameters_of(little) < parameters_of(big) / 4);
    ++made;
  }
  CHECK(made >= 26);
  const auto llama3 = read(small_config("Llama3 70B", {4, 512, {}})).config;
  CHECK(llama3.heads == 4);
  CHECK(llama3.kv_heads == 2);
  CHECK(llama3.head_channels == 128);
  CHECK(llama3.feed_forward == 1792);
  CHECK(llama3.vocabulary == 128256);
  CHECK(error_of([] { small_config("llama3-71b", {}); }).find("did you mean") != std::string::npos);
}

TEST_CASE("Known folders have the published numbers of parameters", "[plan][model]") {
  const auto count = [](const char* name) {
    return parameters_of(read(small_config(name, {})).config);
  };
  CHECK(count("llama3.1-70b") == 70'553'706'496);
  CHECK(count("gemma2-2b") == 2'614'341'888);
  CHECK(count("gemma3-1b") == 999'885'952);
  CHECK(count("phi3-mini") == 3'821'079'552);
  CHECK(count("deepseek-v3") == 671'026'419'200);
  CHECK(count("gpt2") == 124'439'808);
}

}  // namespace hugging_face_shape_test
