#include "pipewright/plan/model/known_transformers.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "support/catch.hpp"

namespace known_transformers_test {

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

TEST_CASE("A known model has the sizes of its config.json", "[plan][model]") {
  for (const std::string& name : known_transformers()) {
    if (without_config.contains(name))
      continue;
    CAPTURE(name);
    const Json config = read(configs.at(name));
    const auto known = find_transformer(name);
    REQUIRE(known);
    const TransformerConfig& model = *known;
    const auto field = [&](const char* key, int otherwise) { return config.value(key, otherwise); };
    CHECK(model.layers == field("num_hidden_layers", 0));
    CHECK(model.hidden == field("hidden_size", 0));
    CHECK(model.heads == field("num_attention_heads", 0));
    CHECK(model.kv_heads == field("num_key_value_heads", model.heads));
    CHECK(model.head_channels == field("v_head_dim", model.hidden / model.heads));
    CHECK(model.feed_forward == field("intermediate_size", 0));
    CHECK(model.vocabulary == field("vocab_size", 0));
    CHECK(model.gated);
    CHECK(model.experts == field("num_local_experts", field("n_routed_experts", 0)));
    CHECK(model.experts_per_token == field("num_experts_per_tok", 0));
    CHECK(model.expert_feed_forward ==
          (model.experts > 0 ? field("moe_intermediate_size", model.feed_forward) : 0));
    CHECK(model.shared_feed_forward == field("n_shared_experts", 0) * model.expert_feed_forward);
    CHECK(model.leading_dense_layers() == field("first_k_dense_replace", 0));
    CHECK(model.q_rank == field("q_lora_rank", 0));
    CHECK(model.kv_rank == field("kv_lora_rank", 0));
    CHECK(model.rope_channels == field("qk_rope_head_dim", 0));
  }
}

TEST_CASE("A known model has the rotary embeddings, norms and router of its config.json",
          "[plan][model]") {
  const auto model = [](const char* name) { return find_transformer(name).value(); };
  CHECK(model("llama2-70b").rotary == Rotary{});
  CHECK(model("llama3-8b").rotary == Rotary{.base = 500'000});
  CHECK(model("llama3-405b").rotary ==
        Rotary{.base = 500'000, .scaling = RotaryScaling::Llama3, .factor = 8, .longest = 8192});
  CHECK(model("mixtral-8x7b").rotary == Rotary{.base = 1e6});
  CHECK(model("mistral-7b").window == read("mistral-7b-v0.1").at("sliding_window"));
  const TransformerConfig v3 = model("deepseekv3"), v2 = model("deepseekv2");
  CHECK(v3.rotary ==
        Rotary{.neighbors = true, .scaling = RotaryScaling::Yarn, .factor = 40, .longest = 4096});
  CHECK(v3.score_scale * std::sqrt(192) == Approx(1.8739).epsilon(1e-4));  // mscale 1
  CHECK(v2.score_scale * std::sqrt(192) == Approx(1.5896).epsilon(1e-4));  // mscale 0.707
  CHECK(v3.norm_epsilon == 1e-6);
  CHECK(v3.latent_norms);
  CHECK(v3.router_scores == RouterScores::Sigmoid);
  CHECK(v3.router_bias);
  CHECK(v3.routed_scale == 2.5);
  CHECK(v2.routed_scale == 16);
  CHECK_FALSE(v2.weights_sum_to_one);
  CHECK(v3.groups_per_token == 4);
  CHECK(v2.groups_per_token == 3);
}

TEST_CASE("GPT-3 has the sizes of its paper and Megatron-LM's padded vocabulary", "[plan][model]") {
  const auto known = find_transformer("GPT-3 175B");
  REQUIRE(known);
  const TransformerConfig& model = *known;
  CHECK(model.layers == 96);  // Brown et al., arXiv 2005.14165, Table 2.1
  CHECK(model.hidden == 12288);
  CHECK(model.heads == 96);
  CHECK(model.head_channels == 128);
  CHECK(model.feed_forward == 4 * 12288);
  CHECK(model.vocabulary == (50257 + 1023) / 1024 * 1024);
  CHECK_FALSE(model.gated);
}

}  // namespace known_transformers_test
