// The fields of config.json files, compared with the configuration classes of Python's transformers
// (tests/data/hugging_face_defaults.json, with its version).

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/hugging_face.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace hugging_face_defaults_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

HuggingFaceModel read(const Json& config) {
  return hugging_face_model(JsonDocument::parse(config.dump(), "config.json"));
}

/// Returns the configs of all families with every field: the defaults, except sizes from which
/// other fields are derived and fields whose null is not supported. Those with sliding windows that
/// are off by default are also returned with windows.
std::vector<Json> whole_configs() {
  const auto document = JsonDocument::read(PIPEWRIGHT_TEST_DATA_DIR "/hugging_face_defaults.json");
  std::vector<Json> configs;
  for (const auto& family : document.root().at("defaults").items()) {
    Json config = family.value();
    config["model_type"] = family.key();
    if (config.contains("hidden_size"))
      config["hidden_size"] = 2304;
    if (config.contains("num_key_value_heads") && config["num_key_value_heads"].is_null())
      config["num_key_value_heads"] = config["num_attention_heads"];
    if (config.contains("num_experts_per_tok") && config["num_experts_per_tok"].is_null())
      config["num_experts_per_tok"] = 6;
    configs.push_back(config);
    if (config.contains("use_sliding_window")) {
      config["use_sliding_window"] = true;
      configs.push_back(config);
    }
  }
  return configs;
}

bool are_same(const HuggingFaceModel& a, const HuggingFaceModel& b) {
  return a.config == b.config && a.untrained == b.untrained && a.dropouts == b.dropouts;
}

TEST_CASE("A field that a config lacks has the default of transformers, or is required",
          "[plan][model]") {
  int defaults = 0;
  for (const Json& whole : whole_configs()) {
    const HuggingFaceModel expected = read(whole);
    for (const auto& field : whole.items()) {
      if (field.key() == "use_sliding_window")
        continue;  // not the default here
      CAPTURE(expected.type, field.key());
      Json config = whole;
      config.erase(field.key());
      const std::string error = error_of([&] { read(config); });
      if (error == "no error")
        CHECK(are_same(read(config), expected));
      else
        CHECK(error.find("\"" + field.key() + "\" is missing") != std::string::npos);
      defaults += error == "no error" ? 1 : 0;
    }
  }
  CHECK(defaults >= 200);
}

/// Fields that change neither the model nor its training.
const std::set<std::string> irrelevant{
    // Only weights that are not in the folder.
    "initializer_range",
    // Inference.
    "bos_token_id", "eos_token_id", "use_cache",
    // They change the order of a computation, not its result.
    "pretraining_tp", "reorder_and_upcast_attn",
    // The weight of a loss that output_router_logits, which is rejected, switches on.
    "router_aux_loss_coef",
    // GPT-2's heads for classification.
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
    "summary_use_proj",
    // Used with another topk_method only.
    "deepseek_v2 n_group", "deepseek_v2 topk_group",
    // Used by other attention only.
    "deepseek_v2 head_dim",
    // These models return the router's scores and have no loss of them.
    "deepseek_v2 output_router_logits", "deepseek_v3 output_router_logits",
    // GPT-2's embedding has no padding row.
    "gpt2 pad_token_id",
    // Used with scaled rotary embeddings only.
    "phi3 original_max_position_embeddings"};

/// Returns another value of the same kind.
Json changed(const Json& value) {
  if (value.is_boolean())
    return !value.get<bool>();
  if (value.is_number_float())
    return value.get<double>() == 0 ? 0.5 : 2 * value.get<double>();
  if (value.is_number())
    return value.get<int>() == 0 ? 2 : 2 * value.get<int>();
  if (value.is_object()) {
    Json other = value;
    for (auto& [key, member] : other.items())
      if (member.is_number() || member.is_object())
        member = changed(member);
    return other;
  }
  return value.is_string() ? Json("another") : Json(2);
}

TEST_CASE("Every field of a config is read, rejected or known to be irrelevant", "[plan][model]") {
  std::set<std::string> read_fields;
  for (const Json& whole : whole_configs()) {
    const HuggingFaceModel expected = read(whole);
    for (const auto& field : whole.items()) {
      Json config = whole;
      config[field.key()] = changed(field.value());
      const std::string error = error_of([&] { read(config); });
      if (error != "no error" || !are_same(read(config), expected))
        read_fields.insert(expected.type + " " + field.key());
    }
  }
  std::set<std::string> unread;
  for (const Json& whole : whole_configs())
    for (const auto& field : whole.items())
      if (const std::string name = whole.at("model_type").get<std::string>() + " " + field.key();
          !read_fields.contains(name) && !irrelevant.contains(field.key()) &&
          !irrelevant.contains(name))
        unread.insert(name);
  CHECK(unread == std::set<std::string>{});
}

}  // namespace hugging_face_defaults_test
