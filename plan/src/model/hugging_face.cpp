#include "pipewright/plan/model/hugging_face.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config_fields.hpp"
#include "config_rotary.hpp"

namespace pipewright::plan {
namespace {

/// Reads the padding token. As in torch, a negative one counts from the end of the vocabulary.
void read_padding(ConfigFields& fields, TransformerConfig& config) {
  const int token = fields.number("pad_token_id", {.least = -most_channels, .most = most_channels},
                                  config.vocabulary);
  config.padding_token = token < 0 ? token + config.vocabulary : token;
  if (config.padding_token < 0 || config.padding_token >= config.vocabulary)
    config.padding_token = -1;
}

/// Reads the fields that nearly all files have under the same names.
void read_sizes(ConfigFields& fields, TransformerConfig& config) {
  fields.size(config.layers, "num_hidden_layers", most_layers);
  fields.size(config.hidden, "hidden_size");
  fields.size(config.heads, "num_attention_heads");
  fields.size(config.vocabulary, "vocab_size");
  fields.size_or(config.longest, "max_position_embeddings", 0, most_tokens);
  config.gated = true;
  config.tied = fields.flag("tie_word_embeddings", false);
  config.norm_epsilon = fields.positive("rms_norm_eps", 1e-6);
  read_padding(fields, config);
  fields.dropout("attention_dropout");
  if (const Json* packed = fields.find("quantization_config"))
    fields.not_trained("quantization_config", *packed);
}

void read_activation(ConfigFields& fields, TransformerConfig& config, const std::string& key,
                     const std::string& fallback) {
  const std::string word = fields.text(key, fallback);
  if (word == "silu" || word == "swish")
    config.activation = Activation::Silu;
  else if (word == "gelu")
    config.activation = Activation::Gelu;
  else if (word == "gelu_new" || word == "gelu_pytorch_tanh" || word == "gelu_fast")
    config.activation = Activation::Tanh;
  else
    fields.not_trained(key, word);
}

/// Reads which layers have the sliding window, if the file lists them.
void read_layer_types(ConfigFields& fields, TransformerConfig& config) {
  const auto types = fields.texts("layer_types");
  if (types.empty() || config.window == 0)
    return;
  if (types.size() != static_cast<std::size_t>(config.layers)) {
    fields.root().error("layer_types", fmt::format("{} types are given for {} layers", types.size(),
                                                   config.layers));
    return;
  }
  config.windowed.clear();
  for (const std::string& type : types) {
    config.windowed.push_back(type == "sliding_attention");
    if (type != "sliding_attention" && type != "full_attention")
      fields.not_trained("layer_types", type);
  }
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
  // Llama 1 has no such field.
  fields.size_or(config.kv_heads, "num_key_value_heads", config.heads);
  fields.size(config.feed_forward, "intermediate_size");
  config.query_bias = config.projection_bias = fields.flag("attention_bias", false);
  config.feed_forward_bias = fields.flag("mlp_bias", false);
  read_activation(fields, config, "hidden_act", "silu");
  read_rotary(fields, config);
}

void read_mistral(ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  read_heads(fields, config);
  fields.size(config.kv_heads, "num_key_value_heads");
  fields.size(config.feed_forward, "intermediate_size");
  read_window(fields, config);
  read_layer_types(fields, config);
  read_activation(fields, config, "hidden_act", "silu");
  read_rotary(fields, config);
}

void read_mixtral(ConfigFields& fields, TransformerConfig& config) {
  read_mistral(fields, config);
  fields.size(config.experts, "num_local_experts");
  fields.size(config.experts_per_token, "num_experts_per_tok");
  config.expert_feed_forward = config.feed_forward;
  config.feed_forward = 0;
  if (fields.number("router_jitter_noise", 0) > 0)
    fields.not_trained("router_jitter_noise", *fields.find("router_jitter_noise"));
  fields.not_trained_if("output_router_logits");  // its auxiliary loss balances the experts
  config.sparse.assign(static_cast<std::size_t>(config.layers), true);
}

void read_qwen(ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  read_heads(fields, config);
  fields.size(config.kv_heads, "num_key_value_heads");
  fields.size(config.feed_forward, "intermediate_size");
  read_activation(fields, config, "hidden_act", "silu");
  read_rotary(fields, config);
  if (!fields.flag("use_sliding_window", false))
    return;
  read_window(fields, config);
  fields.count_or(config.window_from, "max_window_layers", 0, most_layers);
  read_layer_types(fields, config);
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
  // In transformers 5 the field has the name that other models use.
  fields.size(config.experts,
              fields.has("num_local_experts") ? "num_local_experts" : "num_experts");
  fields.size(config.experts_per_token, "num_experts_per_tok");
  fields.size(config.expert_feed_forward, "moe_intermediate_size");
  config.weights_sum_to_one = fields.flag("norm_topk_prob", false);
  fields.not_trained_if("output_router_logits");
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
  // Null: queries are computed from the hidden state directly.
  fields.count_or(config.q_rank, "q_lora_rank", 0);
  fields.size(config.kv_rank, "kv_lora_rank");
  fields.size(config.head_channels, "qk_nope_head_dim");
  fields.size(config.rope_channels, "qk_rope_head_dim");
  fields.size(config.value_channels, "v_head_dim");
  config.latent_norms = true;
  config.query_bias = config.projection_bias = fields.flag("attention_bias", false);
  read_activation(fields, config, "hidden_act", "silu");
  read_rotary(fields, config);
  config.score_scale = score_scale_of_latent(fields, config);
  config.rotary.neighbors = fields.flag("rope_interleave", true);
  config.routed_scale = fields.positive("routed_scaling_factor", 1);
  read_deepseek_mixture(fields, config);
}

/// Reads the groups of experts. A token is routed to the best groups only.
void read_router_groups(ConfigFields& fields, TransformerConfig& config) {
  fields.size_or(config.router_groups, "n_group", 1);
  fields.size_or(config.groups_per_token, "topk_group", 1);
}

void read_deepseek_v2_model(ConfigFields& fields, TransformerConfig& config) {
  read_deepseek_v2(fields, config);
  config.weights_sum_to_one = false;
  fields.not_trained_if("norm_topk_prob");
  const std::string method = fields.text("topk_method", "greedy");
  if (method == "group_limited_greedy")
    read_router_groups(fields, config);
  else if (method != "greedy")
    fields.not_trained("topk_method", method);
}

void read_deepseek_v3(ConfigFields& fields, TransformerConfig& config) {
  read_deepseek_v2(fields, config);
  config.weights_sum_to_one = fields.flag("norm_topk_prob", true);
  config.router_scores = RouterScores::Sigmoid;
  if (const std::string scores = fields.text("scoring_func", "sigmoid"); scores != "sigmoid")
    fields.not_trained("scoring_func", scores);
  const std::string method = fields.text("topk_method", "noaux_tc");
  config.router_bias = method == "noaux_tc";
  if (!config.router_bias)
    fields.not_trained("topk_method", method);
  read_router_groups(fields, config);
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
  config.norm_epsilon = fields.positive("layer_norm_epsilon", 1e-5);
  read_activation(fields, config, "activation_function", "gelu_new");
  if (!fields.flag("scale_attn_weights", true))
    config.score_scale = 1;
  fields.not_trained_if("scale_attn_by_inverse_layer_idx");
  fields.not_trained_if("add_cross_attention");
  config.dropout = fields.dropout("resid_pdrop", 0.1);
  fields.dropout("embd_pdrop", 0.1);
  fields.dropout("attn_pdrop", 0.1);
}

void read_phi3(ConfigFields& fields, TransformerConfig& config) {
  read_mistral(fields, config);
  config.dropout = fields.dropout("resid_pdrop");
  fields.dropout("embd_pdrop");
}

/// Reads what all Gemma models share: norms on both sides, norm weights around 1, a scaled
/// embedding.
void read_gemma(ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  config.tied = fields.flag("tie_word_embeddings", true);
  fields.size_or(config.head_channels, "head_dim", 256);
  config.value_channels = config.head_channels;
  fields.size(config.kv_heads, "num_key_value_heads");
  fields.size(config.feed_forward, "intermediate_size");
  config.query_bias = config.projection_bias = fields.flag("attention_bias", false);
  config.norm_plus_one = config.post_norms = true;
  config.embedding_scale = std::sqrt(1.0 * config.hidden);
  config.score_scale = 1 / std::sqrt(fields.positive("query_pre_attn_scalar", 256));
  read_activation(fields, config, "hidden_activation", "gelu_pytorch_tanh");
  fields.not_trained_if("use_bidirectional_attention");
  fields.count_or(config.window, "sliding_window", 4096, most_tokens);
}

/// Gives all layers the window, except every `every`-th.
void window_in_turn(TransformerConfig& config, int every) {
  for (int layer = 0; layer < config.layers; ++layer)
    config.windowed.push_back((layer + 1) % every != 0);
}

void read_gemma2(ConfigFields& fields, TransformerConfig& config) {
  read_gemma(fields, config);
  window_in_turn(config, 2);
  read_layer_types(fields, config);
  config.score_cap = fields.number("attn_logit_softcapping", 0);
  config.logit_cap = fields.number("final_logit_softcapping", 0);
  read_rotary(fields, config);
}

void read_gemma3(ConfigFields& fields, TransformerConfig& config) {
  read_gemma(fields, config);
  config.head_norms = true;
  window_in_turn(config, fields.number("sliding_window_pattern", {.least = 1, .most = 1000}, 6));
  read_layer_types(fields, config);
  config.score_cap = fields.number("attn_logit_softcapping", 0);
  config.logit_cap = fields.number("final_logit_softcapping", 0);
  read_rotary(fields, config, 1'000'000);
  read_window_rotary(fields, config);
}

struct Architecture {
  const char* type;   // value of `model_type`
  const char* model;  // value of `architectures`
  void (*read)(ConfigFields&, TransformerConfig&);
};
constexpr Architecture architectures[] = {
    {"deepseek_v2", "DeepseekV2ForCausalLM", read_deepseek_v2_model},
    {"deepseek_v3", "DeepseekV3ForCausalLM", read_deepseek_v3},
    {"gemma2", "Gemma2ForCausalLM", read_gemma2},
    {"gemma3_text", "Gemma3ForCausalLM", read_gemma3},
    {"gpt2", "GPT2LMHeadModel", read_gpt2},
    {"llama", "LlamaForCausalLM", read_llama},
    {"mistral", "MistralForCausalLM", read_mistral},
    {"mixtral", "MixtralForCausalLM", read_mixtral},
    {"phi3", "Phi3ForCausalLM", read_phi3},
    {"qwen2", "Qwen2ForCausalLM", read_qwen2},
    {"qwen3", "Qwen3ForCausalLM", read_qwen3},
    {"qwen3_moe", "Qwen3MoeForCausalLM", read_qwen3_moe},
};

/// Returns the file's architecture, or null if it was rejected.
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
    root.text("model_type");  // reports the missing key
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

HuggingFaceModel read_config(JsonObject& root) {
  for (const auto& item : root.diagnostics().document().root().items())
    root.allow(item.key());
  HuggingFaceModel model;
  const Architecture* architecture = architecture_of(root);
  if (architecture == nullptr)
    return model;
  model.type = architecture->type;
  ConfigFields fields(root);
  TransformerConfig& config = model.config;
  config.name = fields.text("_name_or_path", "");
  if (config.name.empty())
    config.name = architecture->type;
  architecture->read(fields, config);
  fields.tell_missing();
  if (root.diagnostics().empty())
    for (const ConfigFault& fault : faults_of(config))
      fields.fault(fault.member, fault.message);
  model.untrained = fields.untrained();
  model.dropouts = fields.dropouts();
  return model;
}

}  // namespace

std::vector<std::string> transformer_types() {
  std::vector<std::string> types;
  for (const Architecture& one : architectures)
    types.emplace_back(one.type);
  return types;
}

HuggingFaceModel hugging_face_model(const JsonDocument& document) {
  Diagnostics diagnostics(document);
  HuggingFaceModel model;
  {
    JsonObject root(diagnostics);
    model = read_config(root);
  }
  diagnostics.throw_if_any();
  return model;
}

TransformerConfig transformer_from_config(const JsonDocument& document) {
  return hugging_face_model(document).config;
}

}  // namespace pipewright::plan
