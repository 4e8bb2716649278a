#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "pipewright/plan/runs/training_run.hpp"
#include "support/catch.hpp"

namespace known_models_test {

using namespace pipewright::plan;
using Json = nlohmann::json;

/// The names of files in tests/data/models.
const std::map<std::string, std::string> configs{
    {"llama2-7b", "llama-2-7b"},        {"llama2-13b", "llama-2-13b"},
    {"llama2-70b", "llama-2-70b"},      {"llama3-8b", "llama-3-8b"},
    {"llama3-70b", "llama-3.1-70b"},    {"llama3-405b", "llama-3.1-405b"},
    {"mistral-7b", "mistral-7b-v0.1"},  {"mixtral-8x7b", "mixtral-8x7b"},
    {"mixtral-8x22b", "mixtral-8x22b"}, {"deepseekv2", "deepseek-v2"},
    {"deepseekv3", "deepseek-v3"}};
const std::set<std::string> without_config{"gpt3-175b"};

Json read(const std::string& name) {
  std::ifstream stream(std::filesystem::path(PIPEWRIGHT_TEST_DATA_DIR) / "models" /
                       (name + ".json"));
  return Json::parse(stream);
}

TEST_CASE("A known model has the sizes of its config.json", "[plan][runs]") {
  for (const std::string& name : known_models()) {
    if (without_config.contains(name))
      continue;
    CAPTURE(name);
    const Json config = read(configs.at(name));
    TrainingRun run;
    REQUIRE(set_known_model(run, name));
    const auto field = [&](const char* key, int otherwise) { return config.value(key, otherwise); };
    CHECK(run.layers == field("num_hidden_layers", 0));
    CHECK(run.hidden == field("hidden_size", 0));
    CHECK(run.heads == field("num_attention_heads", 0));
    CHECK(run.kv_heads == field("num_key_value_heads", run.heads));
    CHECK(run.head_channels == field("v_head_dim", run.hidden / run.heads));
    CHECK(run.feed_forward == field("intermediate_size", 0));
    CHECK(run.vocabulary == field("vocab_size", 0));
    CHECK(run.gated);
    CHECK(run.experts == field("num_local_experts", field("n_routed_experts", 0)));
    CHECK(run.experts_per_token == field("num_experts_per_tok", 0));
    CHECK(run.expert_feed_forward ==
          (run.experts > 0 ? field("moe_intermediate_size", run.feed_forward) : 0));
    CHECK(run.shared_experts == field("n_shared_experts", 0));
    CHECK(run.dense_layers == field("first_k_dense_replace", 0));
    CHECK(run.q_rank == field("q_lora_rank", 0));
    CHECK(run.kv_rank == field("kv_lora_rank", 0));
    CHECK(run.rope_channels == field("qk_rope_head_dim", 0));
  }
}

TEST_CASE("GPT-3 has the sizes of its paper, and Megatron's padded vocabulary", "[plan][runs]") {
  TrainingRun run;
  REQUIRE(set_known_model(run, "gpt3-175b"));
  CHECK(run.layers == 96);  // Brown et al., arXiv 2005.14165, Table 2.1
  CHECK(run.hidden == 12288);
  CHECK(run.heads == 96);
  CHECK(run.head_channels == 128);
  CHECK(run.feed_forward == 4 * 12288);
  CHECK(run.vocabulary == (50257 + 1023) / 1024 * 1024);
  CHECK_FALSE(run.gated);
}

}  // namespace known_models_test
