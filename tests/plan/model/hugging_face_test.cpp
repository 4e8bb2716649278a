#include "pipewright/plan/model/hugging_face.hpp"

#include <filesystem>
#include <set>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace hugging_face_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

const std::string models = PIPEWRIGHT_TEST_DATA_DIR "/models/";

TransformerConfig shipped(const std::string& name) {
  return transformer_from_config(JsonDocument::read(models + name + ".json"));
}

TransformerConfig read(const std::string& text) {
  return transformer_from_config(JsonDocument::parse(text, "config.json"));
}

struct Published {
  const char* name;
  std::int64_t parameters;
};

// Published on Hugging Face or in the models' reports. DeepSeek-V3 is counted without its MTP
// module.
constexpr Published published[] = {
    {"gpt2", 124'439'808},
    {"gpt2-xl", 1'557'611'200},
    {"llama-2-7b", 6'738'415'616},
    {"llama-2-13b", 13'015'864'320},
    {"llama-2-70b", 68'976'648'192},
    {"llama-3-8b", 8'030'261'248},
    {"llama-3.1-70b", 70'553'706'496},
    {"llama-3.1-405b", 405'853'388'800},
    {"mistral-7b-v0.1", 7'241'732'096},
    {"qwen2-7b", 7'615'616'512},
    {"qwen2.5-0.5b", 494'032'768},
    {"qwen2.5-7b", 7'615'616'512},
    {"qwen3-0.6b", 596'049'920},
    {"qwen3-8b", 8'190'735'360},
    {"qwen3-30b-a3b", 30'532'122'624},
    {"mixtral-8x7b", 46'702'792'704},
    {"mixtral-8x22b", 140'620'634'112},
    {"deepseek-v2-lite", 15'706'484'224},
    {"deepseek-v2", 235'741'434'880},
    {"deepseek-v3", 671'026'419'200},
};

TEST_CASE("Public models have the published numbers of parameters", "[plan][model]") {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(models))
    if (entry.path().extension() == ".json")
      files.insert(entry.path().stem());
  for (const Published& model : published) {
    CAPTURE(model.name);
    CHECK(parameters_of(shipped(model.name)) == model.parameters);
    files.erase(model.name);
  }
  CHECK(files == std::set<std::string>{});  // each file's number is listed
}

TEST_CASE("Parameters per token of a mixture equal the published active parameters",
          "[plan][model]") {
  const auto active = [](const std::string& name) {
    return total_of(layers_of({.model = shipped(name)})).active_parameters;
  };
  CHECK(active("mixtral-8x7b") == 12'879'925'248);
  CHECK(static_cast<double>(active("deepseek-v3")) / 1e9 == Approx(37.6).margin(0.1));  // "37B"
  CHECK(static_cast<double>(active("deepseek-v2")) / 1e9 == Approx(21.4).margin(0.1));  // "21B"
  CHECK(active("llama-3-8b") == 8'030'261'248);
  CHECK(active("qwen2.5-0.5b") == 494'032'768);
}

TEST_CASE("DeepSeek-V3's MTP module has the published 11.5 B parameters of its own",
          "[plan][model]") {
  const auto layers =
      layers_of({.model = shipped("deepseek-v3"), .sequence = 4096, .predictions = true});
  REQUIRE(layers.size() == 64);
  const TransformerLayer& module = layers[62];
  CHECK(module.name == "prediction0");
  CHECK(static_cast<double>(module.parameters) / 1e9 == Approx(11.6).margin(0.1));
  CHECK(module.product_flops > layers[61].product_flops + layers[63].product_flops);
}

TEST_CASE("Windows, biases, norms and positions match the architecture", "[plan][model]") {
  CHECK(shipped("mistral-7b-v0.1").seen(0, 8192) == 4096);
  CHECK(shipped("mistral-7b-v0.1").seen(0, 1024) == 1024);
  CHECK(shipped("qwen2.5-7b").seen(27, 99'999) == 99'999);  // its window is switched off
  CHECK(shipped("qwen2.5-7b").query_bias);
  CHECK_FALSE(shipped("qwen2.5-7b").projection_bias);
  CHECK(shipped("qwen3-8b").head_norms);
  CHECK(shipped("gpt2").learned_positions);
  CHECK(shipped("gpt2").norm == NormKind::Layer);
  CHECK(shipped("gpt2").tied);
  CHECK(shipped("deepseek-v3").router_bias);
  CHECK_FALSE(shipped("deepseek-v3").has_experts(2));
  CHECK(shipped("deepseek-v3").has_experts(3));
}

TEST_CASE("An architecture may be named by its class only, and the model need not have a name",
          "[plan][model]") {
  const auto config = read(R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 8,
"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 32,
"rope_theta": 1e4, "torch_dtype": "bfloat16"})");
  CHECK(config.name == "llama");
  CHECK(config.kv_heads == 2);
  CHECK(config.head_channels == 4);
}

TEST_CASE("An unknown architecture is rejected with the nearest known one", "[plan][model]") {
  CHECK(error_of([] { read("{\n  \"model_type\": \"lama\"}"); }) ==
        "config.json:2:3: /model_type: \"lama\" is not known here, did you mean \"llama\"? "
        "(possible: deepseek_v2, deepseek_v3, gemma2, gemma3_text, gpt2, llama, mistral, mixtral, "
        "phi3, qwen2, qwen3 or qwen3_moe)");
  CHECK(error_of([] {
          read(R"({"architectures": ["MistralForCausalML"]})");
        }).find("did you mean \"MistralForCausalLM\"?") != std::string::npos);
  CHECK(error_of([] { read("{}"); }) == "config.json:1:1: /: \"model_type\" is missing");
  CHECK(error_of([] { read("[1]"); }).find("an object is needed here") != std::string::npos);
}

TEST_CASE("All missing fields are reported together, with the nearest present ones",
          "[plan][model]") {
  CHECK(error_of([] {
          read(R"({"model_type": "mistral", "hidden_size": 8,
"num_hidden_layer": 2, "num_attention_heads": 2, "intermediate_size": 16})");
        }) ==
        "config.json:2:1: /num_hidden_layer: \"num_hidden_layers\" is missing; this is the nearest "
        "to it\n"
        "config.json:1:1: /: \"vocab_size\" is missing\n"
        "config.json:1:1: /: \"num_key_value_heads\" is missing");
}

TEST_CASE("Incompatible sizes are rejected with compatible ones", "[plan][model]") {
  const auto with = [](const std::string& more) {
    return error_of([&] {
      read(R"({"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 2,
"intermediate_size": 16, "vocab_size": 32, )" +
           more + "}");
    });
  };
  CHECK(with(R"("num_attention_heads": 8, "num_key_value_heads": 3,
"num_local_experts": 4, "num_experts_per_tok": 5)") ==
        "config.json:2:70: /num_key_value_heads: 8 heads do not divide among 3 heads of keys and "
        "values; 2 or 4 would do\n"
        "config.json:3:25: /num_experts_per_tok: a token goes to 5 experts, but a layer has 4");
  CHECK(with(R"("num_attention_heads": 7, "num_key_value_heads": 7,
"num_local_experts": 4, "num_experts_per_tok": 2)") ==
        "config.json:2:44: /num_attention_heads: 64 channels do not divide among 7 heads, and "
        "\"head_dim\" is missing");
  CHECK(with(R"("num_attention_heads": 8, "num_key_value_heads": 0,
"num_local_experts": "four", "num_experts_per_tok": 2)") ==
        "config.json:2:70: /num_key_value_heads: 0 is not possible: it must be at least 1 and at "
        "most 16777216\n"
        "config.json:3:1: /num_local_experts: a whole number is needed here, not the text "
        "\"four\"");
  CHECK(
      error_of([] {
        read(R"({"model_type": "gpt2", "n_embd": 9000000, "n_layer": 9000, "n_head": 9,
"n_positions": 1, "vocab_size": 9})");
      }) ==
      "config.json:1:24: /n_embd: these sizes make 8.7e+18 parameters; at most 1e+15 are possible");
}

}  // namespace hugging_face_test
