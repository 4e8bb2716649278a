#include "pipewright/plan/model/hugging_face.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipewright/plan/json/json_document.hpp"
#include "size_ranges.hpp"

namespace pipewright::plan {
namespace {

/// The fields of a file. It knows from which key a member came, and which keys were wanted in vain.
class ConfigFields {
 public:
  explicit ConfigFields(JsonObject& root) : root_(root) {}

  /// null counts as not there.
  bool has(const std::string& key) {
    const Json* value = root_.find(key);
    return value != nullptr && !value->is_null();
  }

  void size(int& member, const std::string& key, double most = most_channels) {
    from(member, key, {.least = 1, .most = most}, {});
  }
  void size_or(int& member, const std::string& key, int fallback, double most = most_channels) {
    from(member, key, {.least = 1, .most = most}, fallback);
  }
  /// May be 0.
  void count_or(int& member, const std::string& key, int fallback, double most = most_channels) {
    from(member, key, {.least = 0, .most = most}, fallback);
  }
  int number(const std::string& key, Range range, int fallback) {
    return has(key) ? root_.integer(key, range, fallback) : fallback;
  }
  bool flag(const std::string& key, bool fallback) {
    return has(key) ? root_.flag(key, fallback) : fallback;
  }
  double number(const std::string& key, double fallback) {
    return has(key) ? root_.number(key, at_least(0), fallback) : fallback;
  }
  std::string text(const std::string& key, const std::string& fallback) {
    return has(key) ? root_.text(key, fallback) : fallback;
  }
  JsonObject& root() { return root_; }
  /// So far.
  bool are_sound() const { return missing_.empty() && root_.diagnostics().empty(); }

  void fault(const int* member, const std::string& message) {
    const auto key = key_of_.find(member);
    root_.error(key == key_of_.end() ? std::string("model_type") : key->second, message);
  }

  /// Behind the last field. A missing one may be there under a name that is nearly right.
  void tell_missing() {
    std::vector<std::string> others;
    for (const auto& item : root_.diagnostics().document().root().items())
      if (std::find(asked_.begin(), asked_.end(), item.key()) == asked_.end())
        others.push_back(item.key());
    for (const std::string& key : missing_) {
      const std::string* near = nearest_to(key, others);
      if (near != nullptr)
        root_.error(*near, fmt::format("\"{}\" is missing; this is the nearest to it", key));
      else
        root_.diagnostics().add("", fmt::format("\"{}\" is missing", key));
    }
  }

 private:
  void from(int& member, const std::string& key, Range range, std::optional<int> fallback) {
    asked_.push_back(key);
    if (has(key)) {
      key_of_[&member] = key;
      member = root_.integer(key, range, fallback.value_or(1));
    } else {
      member = fallback.value_or(1);
      if (!fallback)
        missing_.push_back(key);
    }
  }

  JsonObject& root_;
  std::map<const int*, std::string> key_of_;
  std::vector<std::string> missing_, asked_;
};

/// What nearly all files have under the same names.
void read_sizes(ConfigFields& fields, TransformerConfig& config) {
  fields.size(config.layers, "num_hidden_layers", most_layers);
  fields.size(config.hidden, "hidden_size");
  fields.size(config.heads, "num_attention_heads");
  fields.size(config.vocabulary, "vocab_size");
  fields.size_or(config.longest, "max_position_embeddings", 0, most_tokens);
  config.gated = true;
  config.tied = fields.flag("tie_word_embeddings", false);
}

void read_heads(ConfigFields& fields, TransformerConfig& config) {
  fields.size_or(config.head_channels, "head_dim", 0);
  if (config.head_channels == 0) {
    config.head_channels = std::max(1, config.hidden / config.heads);
    if (fields.are_sound() && config.hidden % config.heads != 0)
      fields.fault(&config.heads,
                   fmt::format("{} channels do not divide among {} heads, and \"head_dim\" is "
                               "missing",
                               config.hidden, config.heads));
  }
  config.value_channels = config.head_channels;
}

void read_window(ConfigFields& fields, TransformerConfig& config) {
  fields.count_or(config.window, "sliding_window", 0, most_tokens);
}

void read_llama(ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  read_heads(fields, config);
  fields.size_or(config.kv_heads, "num_key_value_heads", config.heads);  // Llama 1 has none
  fields.size(config.feed_forward, "intermediate_size");
  config.query_bias = config.projection_bias = fields.flag("attention_bias", false);
  config.feed_forward_bias = fields.flag("mlp_bias", false);
}

void read_mistral(ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  read_heads(fields, config);
  fields.size(config.kv_heads, "num_key_value_heads");
  fields.size(config.feed_forward, "intermediate_size");
  read_window(fields, config);
}

void read_mixtral(ConfigFields& fields, TransformerConfig& config) {
  read_mistral(fields, config);
  fields.size(config.experts, "num_local_experts");
  fields.size(config.experts_per_token, "num_experts_per_tok");
  config.expert_feed_forward = config.feed_forward;
  config.feed_forward = 0;
  config.sparse.assign(static_cast<std::size_t>(config.layers), true);
}

void read_qwen(ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  read_heads(fields, config);
  fields.size(config.kv_heads, "num_key_value_heads");
  fields.size(config.feed_forward, "intermediate_size");
  if (!fields.flag("use_sliding_window", false))
    return;
  read_window(fields, config);
  fields.count_or(config.window_from, "max_window_layers", 0, most_layers);
}

void read_qwen2(ConfigFields& fields, TransformerConfig& config) {
  read_qwen(fields, config);
  config.query_bias = true;
}

void read_qwen3(ConfigFields& fields, TransformerConfig& config) {
  read_qwen(fields, config);
  config.query_bias = config.projection_bias = fields.flag("attention_bias", false);
  config.head_norms = true;
}

void read_qwen3_moe(ConfigFields& fields, TransformerConfig& config) {
  read_qwen3(fields, config);
  fields.size(config.experts, "num_experts");
  fields.size(config.experts_per_token, "num_experts_per_tok");
  fields.size(config.expert_feed_forward, "moe_intermediate_size");
  const int step = fields.number("decoder_sparse_step", {.least = 1, .most = most_layers}, 1);
  for (int layer = 0; layer < config.layers; ++layer)
    config.sparse.push_back((layer + 1) % step == 0);
  for (const int layer : fields.root().integers("mlp_only_layers", at_least(0), std::vector<int>{}))
    if (layer < config.layers)
      config.sparse[static_cast<std::size_t>(layer)] = false;
}

void read_deepseek_mixture(ConfigFields& fields, TransformerConfig& config) {
  fields.size(config.experts, "n_routed_experts");
  fields.size(config.experts_per_token, "num_experts_per_tok");
  fields.size(config.expert_feed_forward, "moe_intermediate_size");
  const int shared = fields.number("n_shared_experts", {.least = 0, .most = 100}, 0);
  config.shared_feed_forward = shared * config.expert_feed_forward;
  const int dense = fields.number("first_k_dense_replace", {.least = 0, .most = most_layers}, 0);
  const int step = fields.number("moe_layer_freq", {.least = 1, .most = most_layers}, 1);
  for (int layer = 0; layer < config.layers; ++layer)
    config.sparse.push_back(layer >= dense && layer % step == 0);
}

void read_deepseek_v2(ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  config.kv_heads = config.heads;
  fields.size(config.feed_forward, "intermediate_size");
  fields.count_or(config.q_rank, "q_lora_rank", 0);  // null: queries come from the hidden state
  fields.size(config.kv_rank, "kv_lora_rank");
  fields.size(config.head_channels, "qk_nope_head_dim");
  fields.size(config.rope_channels, "qk_rope_head_dim");
  fields.size(config.value_channels, "v_head_dim");
  config.latent_norms = true;
  config.query_bias = config.projection_bias = fields.flag("attention_bias", false);
  read_deepseek_mixture(fields, config);
}

void read_deepseek_v3(ConfigFields& fields, TransformerConfig& config) {
  read_deepseek_v2(fields, config);
  config.router_bias = fields.text("topk_method", "noaux_tc") == "noaux_tc";
  fields.count_or(config.predictions, "num_nextn_predict_layers", 0, 100);
}

void read_gpt2(ConfigFields& fields, TransformerConfig& config) {
  fields.size(config.layers, "n_layer", most_layers);
  fields.size(config.hidden, "n_embd");
  fields.size(config.heads, "n_head");
  fields.size(config.vocabulary, "vocab_size");
  fields.size(config.longest, "n_positions", most_tokens);
  fields.size_or(config.feed_forward, "n_inner", 4 * config.hidden, 4 * most_channels);
  read_heads(fields, config);
  config.kv_heads = config.heads;
  config.tied = fields.flag("tie_word_embeddings", true);
  config.learned_positions = true;
  config.norm = NormKind::Layer;
  config.query_bias = config.projection_bias = config.feed_forward_bias = true;
  config.dropout = fields.number("resid_pdrop", 0.1) > 0;
}

struct Architecture {
  const char* type;   // as `model_type` says
  const char* model;  // as `architectures` says
  void (*read)(ConfigFields&, TransformerConfig&);
};
constexpr Architecture architectures[] = {
    {"deepseek_v2", "DeepseekV2ForCausalLM", read_deepseek_v2},
    {"deepseek_v3", "DeepseekV3ForCausalLM", read_deepseek_v3},
    {"gpt2", "GPT2LMHeadModel", read_gpt2},
    {"llama", "LlamaForCausalLM", read_llama},
    {"mistral", "MistralForCausalLM", read_mistral},
    {"mixtral", "MixtralForCausalLM", read_mixtral},
    {"qwen2", "Qwen2ForCausalLM", read_qwen2},
    {"qwen3", "Qwen3ForCausalLM", read_qwen3},
    {"qwen3_moe", "Qwen3MoeForCausalLM", read_qwen3_moe},
};

/// Null when it was refused.
const Architecture* architecture_of(JsonObject& root) {
  if (root.has("model_type")) {
    const std::string type = root.choice("model_type", transformer_types());
    const auto* const found =
        std::find_if(std::begin(architectures), std::end(architectures),
                     [&](const Architecture& one) { return one.type == type; });
    return root.diagnostics().empty() ? found : nullptr;
  }
  std::vector<std::string> models;
  for (const Architecture& one : architectures)
    models.emplace_back(one.model);
  if (!root.has("architectures")) {
    root.text("model_type");  // says that it is missing
    return nullptr;
  }
  const auto named = root.texts("architectures");
  for (const Architecture& one : architectures)
    if (!named.empty() && named.front() == one.model)
      return &one;
  if (root.diagnostics().empty())
    root.error(
        "architectures",
        fmt::format("{} is not known here{} (possible: {})",
                    named.empty() ? "none" : "\"" + named.front() + "\"",
                    named.empty() ? "" : did_you_mean(named.front(), models), listed(models)));
  return nullptr;
}

TransformerConfig read_config(JsonObject& root) {
  for (const auto& item : root.diagnostics().document().root().items())
    root.allow(item.key());
  TransformerConfig config;
  const Architecture* architecture = architecture_of(root);
  if (architecture == nullptr)
    return config;
  ConfigFields fields(root);
  config.name = fields.text("_name_or_path", "");
  if (config.name.empty())
    config.name = architecture->type;
  architecture->read(fields, config);
  fields.tell_missing();
  if (root.diagnostics().empty())
    for (const ConfigFault& fault : faults_of(config))
      fields.fault(fault.member, fault.message);
  return config;
}

}  // namespace

std::vector<std::string> transformer_types() {
  std::vector<std::string> types;
  for (const Architecture& one : architectures)
    types.emplace_back(one.type);
  return types;
}

TransformerConfig transformer_from_config(const JsonDocument& document) {
  Diagnostics diagnostics(document);
  TransformerConfig config;
  {
    JsonObject root(diagnostics);
    config = read_config(root);
  }
  diagnostics.throw_if_any();
  return config;
}

}  // namespace pipewright::plan
