#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "models/support/megatron_rules.hpp"
#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/models/trainers/trainer_file.hpp"
#include "pipewright/models/transformer/stage_layers.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/known_transformers.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"
#include "support/catch.hpp"

namespace megatron_export_test {

using namespace pipewright::plan;
using namespace pipewright::models;
using megatron_rules::Arguments;

Scenario plan_of(const TransformerConfig& model, const Cut& cut) {
  Scenario scenario;
  scenario.model = TransformerShape{.config = model, .sequence = 1024};
  scenario.data = {.kind = "tokens", .path = "tokens.bin"};
  Cut staged = cut;
  if (model.layers % cut.stages() != 0)
    staged.stage_layers = balanced_stage_layers(model.layers, cut.stages(), 1, 1);
  Pipeline& pipeline = scenario.pipeline;
  pipeline.schedule = cut.chunks > 1 ? "interleaved-1f1b" : "1f1b";
  pipeline.ranks = cut.pipeline;
  pipeline.chunks = cut.chunks;
  pipeline.partition = boundaries_of(staged, model.layers);
  pipeline.microbatches = 2 * cut.pipeline;
  pipeline.replicas = cut.data;
  pipeline.tensor = cut.tensor;
  pipeline.sequence_parallel = cut.tensor > 1;
  pipeline.context = cut.context;
  pipeline.expert = cut.expert;
  scenario.training.microbatch_size = 2;
  scenario.training.precision = Precision::Mixed;
  scenario.training.zero = cut.zero;
  scenario.training.recompute = cut.recompute;
  return scenario;
}

std::vector<std::string> broken_rules(const std::string& text, int gpus) {
  const Arguments arguments(text);
  std::vector<std::string> broken;
  for (const auto& rule : megatron_rules::rules())
    if (!rule.holds(arguments, gpus))
      broken.emplace_back(rule.source);
  return broken;
}

/// Returns the model's fields as they are read from exported arguments.
Json model_read_from(const std::string& text, const TransformerShape& shape) {
  const DescribedTransformer read = transformer_from_megatron(text, "megatron.txt");
  TransformerShape theirs = shape;
  theirs.config = read.training.model;
  theirs.config.name = shape.config.name;
  theirs.sequence = read.training.sequence;
  return to_json(ModelShape(theirs));
}

TEST_CASE("Each of Megatron-LM's rules is broken by its example alone", "[plan][trainers]") {
  for (const auto& rule : megatron_rules::rules()) {
    CAPTURE(rule.source, rule.broken);
    CHECK(broken_rules(rule.broken, 12) == std::vector<std::string>{rule.source});
  }
}

TEST_CASE("Exported arguments of every known model keep Megatron-LM's rules and its model",
          "[plan][trainers]") {
  int written = 0;
  std::set<std::string> refused;
  const auto check = [&](const TransformerConfig& model, const Cut& cut) {
    const Scenario scenario = plan_of(model, cut);
    CAPTURE(model.name, cut.pipeline, cut.chunks, cut.expert, cut.tensor, model.predictions);
    if (const auto lines = unsupported_fields(Trainer::Megatron, scenario); !lines.empty()) {
      for (const std::string& line : lines)
        refused.insert(model.name + ": " + line);
      return;
    }
    const std::string text = trainer_file(Trainer::Megatron, scenario);
    INFO(text);
    CHECK(broken_rules(text, cut.devices()).empty());
    Json expected = to_json(scenario.model);
    const auto& shape = scenario.model.as<TransformerShape>();
    expected["max_sequence"] = std::max(model.longest, shape.sequence);
    CHECK(model_read_from(text, shape) == expected);
    ++written;
  };
  for (const std::string& name : known_transformers()) {
    TransformerConfig model = *find_transformer(name);
    for (const int predictions : {0, 1, 2})
      for (const int pipeline : {1, 2, 4})
        for (const int chunks : {1, 2})
          for (const int expert : {1, 2, 4})
            for (const int tensor : {1, 2})
              for (const int zero : {0, 1}) {
                if ((chunks > 1 && pipeline == 1) || (expert > 1 && !model.has_mixture()))
                  continue;
                model.predictions = predictions;
                check(model, {.tensor = tensor,
                              .context = tensor,
                              .data = 4,
                              .expert = expert,
                              .pipeline = pipeline,
                              .chunks = chunks,
                              .zero = zero,
                              .recompute = zero > 0 ? RecomputeMode::Full : RecomputeMode::None});
              }
  }
  CHECK(written > 800);
  CHECK(refused == std::set<std::string>{"deepseekv2: model.router_groups=8: it ranks groups by "
                                         "their best 2 experts, this model by the best 1"});
}

TEST_CASE("DeepSeek-V3's arguments have its router, its rotary embeddings and its prediction",
          "[plan][trainers]") {
  TransformerConfig model = *find_transformer("deepseekv3");
  model.predictions = 1;
  const std::string text =
      trainer_file(Trainer::Megatron, plan_of(model, {.data = 2, .expert = 2, .pipeline = 4}));
  const auto has = [&](const std::string& words) { return text.find(words) != text.npos; };
  CHECK(has("--moe-router-score-function sigmoid --moe-router-enable-expert-bias"));
  CHECK(has("--moe-router-num-groups 8 --moe-router-group-topk 4"));
  CHECK(has("--moe-router-topk-scaling-factor 2.5"));
  CHECK(has("--rope-type yarn --rotary-scaling-factor 40 --mscale 1 --mscale-all-dim 1"));
  CHECK(has("--mtp-num-layers 1"));
  CHECK(has("mL'"));  // the prediction stands before the loss
}

TEST_CASE("Llama 3.1's arguments have its base and its scaling", "[plan][trainers]") {
  const std::string text = trainer_file(
      Trainer::Megatron, plan_of(*find_transformer("llama3-405b"), {.tensor = 8, .pipeline = 2}));
  CHECK(text.find("--position-embedding-type rope --rotary-base 500000 --use-rope-scaling "
                  "--rope-scaling-factor 8 ") != text.npos);
  CHECK(text.find("--norm-epsilon 1e-05 ") != text.npos);
}

TEST_CASE("Models of Hugging Face are exported as the same ones, or the differing field is named",
          "[plan][trainers]") {
  std::map<std::string, std::string> named;
  for (const auto& folder :
       std::filesystem::directory_iterator(PIPEWRIGHT_TEST_DATA_DIR "/hugging_face")) {
    if (!folder.is_directory())
      continue;
    const std::string name = folder.path().filename();
    const TransformerConfig model = read_transformer(folder.path() / "config.json").training.model;
    const Scenario scenario = plan_of(model, {.data = 2});
    std::string& lines = named[name];
    for (const std::string& line : unsupported_fields(Trainer::Megatron, scenario))
      lines += line.substr(6, line.find('=') - 6) + " ";  // after "model."
  }
  const std::string gemma = "post_norms activation embedding_scale padding_token score_scale ";
  CHECK(named == std::map<std::string, std::string>{
                     {"deepseek-v2", "rotary_original_length "},  // 4096 only
                     {"deepseek-v2-lite", ""},
                     {"deepseek-v3", "rotary_original_length router_groups "},
                     {"gemma2", gemma + "score_cap logit_cap "},
                     {"gemma3", gemma + "rotary_window_base "},
                     {"gpt2", ""},
                     {"llama-linear", ""},
                     {"llama-yarn", ""},
                     {"llama2", ""},
                     {"llama3", "rotary_original_length "},  // 8192 only
                     {"mistral", ""},
                     {"mixtral", ""},
                     {"phi3", "padding_token rotary_scaling rotary_factor rotary_magnitude "},
                     {"qwen2", ""},
                     {"qwen2-window", ""},
                     {"qwen3", ""},
                     {"qwen3-moe", ""}});
}

/// Returns other values of a field.
std::vector<Json> others(const std::string& key, const Json& value) {
  static const std::map<std::string, std::vector<Json>> words{
      {"norm", {"layer"}},
      {"activation", {"gelu", "tanh"}},
      {"router_scores", {"sigmoid"}},
      {"rotary_scaling", {"linear", "llama3", "yarn", "long"}},
      {"attention", {"scores"}},
      {"product_precision", {"float8"}},
      {"windowed", {Json::array({true, false, true, false})}},
      {"sparse", {Json::array({false, true, false, true})}},
      {"rotary_fraction", {0.5}}};
  if (const auto found = words.find(key); found != words.end())
    return found->second;
  if (value.is_boolean())
    return {!value.get<bool>()};
  if (value.is_number_integer())
    return {value.get<int>() > 0 ? 2 * value.get<int>() : 2};
  if (value.is_number())
    return {value.get<double>() * 2 + 2};
  return {};
}

/// Returns true if the arguments express this model, or a line names a field of it. A field may
/// depend on the changed one: all linear layers have biases, or none.
bool is_kept_or_named(const TransformerShape& shape, const std::string& key, bool& kept) {
  Scenario scenario = plan_of(shape.config, {});
  scenario.model = shape;
  const auto lines = unsupported_fields(Trainer::Megatron, scenario);
  kept = lines.empty();
  if (!kept)
    return std::ranges::any_of(lines,
                               [&](const std::string& line) { return line.starts_with("model"); });
  const Json read = model_read_from(trainer_file(Trainer::Megatron, scenario), shape);
  return read.at(key) == to_json(ModelShape(shape)).at(key);
}

TEST_CASE("Every field of a model that Megatron-LM lacks is named, and the others are kept",
          "[plan][trainers]") {
  TransformerConfig model{.name = "small",
                          .layers = 4,
                          .hidden = 64,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_channels = 16,
                          .value_channels = 16,
                          .feed_forward = 128,
                          .vocabulary = 256,
                          .longest = 4096,
                          .gated = true,
                          .experts = 8,
                          .experts_per_token = 2,
                          .expert_feed_forward = 32};
  model.set_mixture_behind(1);
  model.window = 512;
  model.window_from = 2;
  model.rotary.factor = 4;
  model.rotary.longest = 8192;
  const Json start = to_json(ModelShape(TransformerShape{.config = model, .sequence = 1024}));
  // They have no effect here: without latent attention, groups of experts or scaled frequencies.
  const std::set<std::string> without_effect{
      "q_rank", "rope_channels", "latent_norms", "groups_per_token", "window_from", "rotary_factor",
      "rotary_original_length", "rotary_low", "rotary_high", "rotary_fast", "rotary_slow",
      "rotary_short_factors", "rotary_long_factors", "kind", "name",
      // … or are written by other options
      "attention", "product_precision", "sequence"};
  int kept = 0, named = 0;
  for (const auto& [key, value] : start.items())
    for (const Json& other : others(key, value)) {
      if (without_effect.contains(key))
        continue;
      Json json = to_json(plan_of(model, {}));
      json["model"] = start;
      json["model"][key] = other;
      CAPTURE(key, other.dump());
      Scenario scenario;
      try {
        scenario = scenario_from_json(JsonDocument::parse(json.dump(), "changed.json"));
      } catch (const InputError&) {
        continue;  // no such model
      }
      bool is_kept = false;
      CHECK(is_kept_or_named(scenario.model.as<TransformerShape>(), key, is_kept));
      ++(is_kept ? kept : named);
    }
  CHECK(kept >= 30);
  CHECK(named >= 18);
}

}  // namespace megatron_export_test
