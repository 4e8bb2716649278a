#include "pipewright/plan/model/hugging_face.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "config_fields.hpp"
#include "config_rotary.hpp"

namespace pipewright::plan {
namespace {

constexpr int no_padding = std::numeric_limits<int>::max();  // as a token, before it is checked

/// Reads the padding token; `absent` is the default. As in torch, a negative one counts from the
/// end of the vocabulary.
void read_padding(ConfigFields& fields, TransformerConfig& config, int absent) {
  const int token = fields.number("pad_token_id", {.least = -most_channels, .most = most_channels},
                                  fields.is_null("pad_token_id") ? no_padding : absent);
  config.padding_token = token < 0 ? token + config.vocabulary : token;
  if (config.padding_token < 0 || config.padding_token >= config.vocabulary)
    config.padding_token = -1;
}

/// Reads the fields that nearly all files have under the same names. `config` has the defaults of
/// the architecture.
void read_sizes(ConfigFields& fields, TransformerConfig& config) {
  fields.size(config.layers, "num_hidden_layers", most_layers);
  fields.size(config.hidden, "hidden_size");
  fields.size(config.heads, "num_attention_heads");
  fields.size(config.vocabulary, "vocab_size");
  fields.size_or(config.longest, "max_position_embeddings", config.longest, most_tokens);
  config.gated = true;
  config.tied = fields.flag("tie_word_embeddings", false);
  config.norm_epsilon = fields.positive("rms_norm_eps", config.norm_epsilon);
  read_padding(fields, config, config.padding_token);
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

/// Reads the channels of a head. Without a default (0) they follow from the hidden size.
void read_heads(ConfigFields& fields, TransformerConfig& config, int absent = 0) {
  fields.size_or(config.head_channels, "head_dim", fields.fallback("head_dim", absent));
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

void read_window(ConfigFields& fields, TransformerConfig& config, int absent) {
  fields.count_or(config.window, "sliding_window", fields.fallback("sliding_window", absent),
                  most_tokens);
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

/// Reads what models of Mistral's kind share; `window` and `rotary_base` are defaults.
void read_windowed(ConfigFields& fields, TransformerConfig& config, int window,
                   double rotary_base = 10'000) {
  read_sizes(fields, config);
  read_heads(fields, config);
  fields.size(config.kv_heads, "num_key_value_heads");
  fields.size(config.feed_forward, "intermediate_size");
  read_window(fields, config, window);
  read_layer_types(fields, config);
  read_activation(fields, config, "hidden_act", "silu");
  read_rotary(fields, config, rotary_base);
}

void read_mistral(ConfigFields& fields, TransformerConfig& config) {
  read_windowed(fields, config, /*window=*/4096);
}

void read_mixtral(ConfigFields& fields, TransformerConfig& config) {
  read_windowed(fields, config, /*window=*/0, /*rotary_base=*/1'000'000);
  fields.size(config.experts, "num_local_experts");
  fields.size(config.experts_per_token, "num_experts_per_tok");
  config.expert_feed_forward = config.feed_forward;
  config.feed_forward = 0;
  if (fields.number("router_jitter_noise", 0) > 0)
    fields.not_trained("router_jitter_noise", *fields.find("router_jitter_noise"));
  fields.not_trained_if("output_router_logits");  // its auxiliary loss balances the experts
  config.sparse.assign(static_cast<std::size_t>(config.layers), true);
}

void read_qwen(ConfigFields& fields, TransformerConfig& config, int head_channels = 0) {
  read_sizes(fields, config);
  read_heads(fields, config, head_channels);
  fields.size(config.kv_heads, "num_key_value_heads");
  fields.size(config.feed_forward, "intermediate_size");
  read_activation(fields, config, "hidden_act", "silu");
  read_rotary(fields, config);
  if (fields.flag("use_sliding_window", false))
    read_window(fields, config, 4096);
}

/// Reads which layers have the window: those of `layer_types`, or those from a layer on.
void read_windowed_layers(ConfigFields& fields, TransformerConfig& config) {
  if (config.window == 0)
    return;
  fields.count_or(config.window_from, "max_window_layers", fields.fallback("max_window_layers", 28),
                  most_layers);
  read_layer_types(fields, config);
}

void read_qwen2(ConfigFields& fields, TransformerConfig& config) {
  read_qwen(fields, config);
  read_windowed_layers(fields, config);
  config.query_bias = true;
}

void read_head_norms(ConfigFields& fields, TransformerConfig& config) {
  config.query_bias = config.projection_bias = fields.flag("attention_bias", false);
  config.head_norms = true;
}

void read_qwen3(ConfigFields& fields, TransformerConfig& config) {
  read_qwen(fields, config, /*head_channels=*/128);
  read_windowed_layers(fields, config);
  read_head_norms(fields, config);
}

void read_qwen3_moe(ConfigFields& fields, TransformerConfig& config) {
  read_qwen(fields, config);
  read_head_norms(fields, config);
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
  if (!fields.has("mlp_only_layers"))
    return;
  for (const int layer : fields.root().integers("mlp_only_layers", at_least(0)))
    if (layer < config.layers)
      config.sparse[static_cast<std::size_t>(layer)] = false;
}

/// Reads the experts; `shared_experts` and `dense_layers` are defaults.
void read_deepseek_mixture(ConfigFields& fields, TransformerConfig& config, int shared_experts,
                           int dense_layers) {
  fields.size(config.experts, "n_routed_experts");
  fields.size(config.experts_per_token, "num_experts_per_tok");
  fields.size(config.expert_feed_forward, "moe_intermediate_size");
  const int shared = fields.number("n_shared_experts", {.least = 0, .most = 100},
                                   fields.fallback("n_shared_experts", shared_experts));
  config.shared_feed_forward = shared * config.expert_feed_forward;
  const int dense = fields.number("first_k_dense_replace", {.least = 0, .most = most_layers},
                                  fields.fallback("first_k_dense_replace", dense_layers));
  const int step = fields.number("moe_layer_freq", {.least = 1, .most = most_layers}, 1);
  for (int layer = 0; layer < config.layers; ++layer)
    config.sparse.push_back(layer >= dense && layer % step == 0);
}

void read_deepseek(ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  config.kv_heads = config.heads;
  if (fields.number("num_key_value_heads", at_least(1), config.heads) != config.heads)
    fields.not_trained("num_key_value_heads", *fields.find("num_key_value_heads"));
  fields.not_trained_if("mlp_bias");
  fields.size(config.feed_forward, "intermediate_size");
  // Null: queries are computed from the hidden state directly.
  fields.count_or(config.q_rank, "q_lora_rank", fields.fallback("q_lora_rank", 1536));
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
}

/// Reads the groups of experts. A token is routed to the best groups only. `groups` and `best` are
/// defaults.
void read_router_groups(ConfigFields& fields, TransformerConfig& config, int groups, int best) {
  const auto or_one = [&](const char* key, int absent) {
    return std::max(1, fields.fallback(key, absent));
  };
  fields.size_or(config.router_groups, "n_group", or_one("n_group", groups));
  fields.size_or(config.groups_per_token, "topk_group", or_one("topk_group", best));
}

void read_deepseek_v2(ConfigFields& fields, TransformerConfig& config) {
  read_deepseek(fields, config);
  config.routed_scale = fields.positive("routed_scaling_factor", 1);
  read_deepseek_mixture(fields, config, /*shared_experts=*/2, /*dense_layers=*/0);
  config.weights_sum_to_one = false;
  fields.not_trained_if("norm_topk_prob");
  const std::string method = fields.text("topk_method", "greedy");
  if (method == "group_limited_greedy")
    read_router_groups(fields, config, 1, 1);
  else if (method != "greedy")
    fields.not_trained("topk_method", method);
}

void read_deepseek_v3(ConfigFields& fields, TransformerConfig& config) {
  read_deepseek(fields, config);
  config.routed_scale = fields.positive("routed_scaling_factor", 2.5);
  read_deepseek_mixture(fields, config, /*shared_experts=*/1, /*dense_layers=*/3);
  config.weights_sum_to_one = fields.flag("norm_topk_prob", true);
  config.router_scores = RouterScores::Sigmoid;
  if (const std::string scores = fields.text("scoring_func", "sigmoid"); scores != "sigmoid")
    fields.not_trained("scoring_func", scores);
  const std::string method = fields.text("topk_method", "noaux_tc");
  config.router_bias = method == "noaux_tc";
  if (!config.router_bias)
    fields.not_trained("topk_method", method);
  read_router_groups(fields, config, 8, 4);
  const char* const predictions =
      fields.has("num_mtp_layers") ? "num_mtp_layers" : "num_nextn_predict_layers";
  fields.count_or(config.predictions, predictions, fields.fallback(predictions, 1), 100);
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
  config.norm_epsilon = fields.positive("layer_norm_epsilon", config.norm_epsilon);
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
  read_windowed(fields, config, /*window=*/0);
  config.dropout = fields.dropout("resid_pdrop");
  fields.dropout("embd_pdrop");
}

/// Reads what all Gemma models share: norms on both sides, norm weights around 1, a scaled
/// embedding.
void read_gemma(ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  config.tied = fields.flag("tie_word_embeddings", true);
  read_heads(fields, config, 256);
  fields.size(config.kv_heads, "num_key_value_heads");
  fields.size(config.feed_forward, "intermediate_size");
  config.query_bias = config.projection_bias = fields.flag("attention_bias", false);
  config.norm_plus_one = config.post_norms = true;
  config.embedding_scale = std::sqrt(1.0 * config.hidden);
  config.score_scale = 1 / std::sqrt(fields.positive("query_pre_attn_scalar", 256));
  read_activation(fields, config, "hidden_activation", "gelu_pytorch_tanh");
  fields.not_trained_if("use_bidirectional_attention");
  read_window(fields, config, 4096);
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
  config.score_cap =
      fields.number("attn_logit_softcapping", fields.fallback("attn_logit_softcapping", 50.0));
  config.logit_cap =
      fields.number("final_logit_softcapping", fields.fallback("final_logit_softcapping", 30.0));
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

/// A family of models. Its defaults are those of transformers 5.24
/// (tests/data/hugging_face_defaults.json).
struct Architecture {
  const char* type;   // value of `model_type`
  const char* model;  // value of `architectures`
  void (*read)(ConfigFields&, TransformerConfig&);
  int longest;
  double norm_epsilon = 1e-6;
  int padding_token = no_padding;
};
constexpr Architecture architectures[] = {
    {"deepseek_v2", "DeepseekV2ForCausalLM", read_deepseek_v2, 2048},
    {"deepseek_v3", "DeepseekV3ForCausalLM", read_deepseek_v3, 4096},
    {"gemma2", "Gemma2ForCausalLM", read_gemma2, 8192, 1e-6, 0},
    {"gemma3_text", "Gemma3ForCausalLM", read_gemma3, 131'072, 1e-6, 0},
    {"gpt2", "GPT2LMHeadModel", read_gpt2, 1024, 1e-5, -1},
    {"llama", "LlamaForCausalLM", read_llama, 2048},
    {"mistral", "MistralForCausalLM", read_mistral, 131'072},
    {"mixtral", "MixtralForCausalLM", read_mixtral, 131'072, 1e-5},
    {"phi3", "Phi3ForCausalLM", read_phi3, 4096, 1e-5, 32'000},
    {"qwen2", "Qwen2ForCausalLM", read_qwen2, 32'768},
    {"qwen3", "Qwen3ForCausalLM", read_qwen3, 32'768},
    {"qwen3_moe", "Qwen3MoeForCausalLM", read_qwen3_moe, 32'768},
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
  config.longest = architecture->longest;
  config.norm_epsilon = architecture->norm_epsilon;
  config.padding_token = architecture->padding_token;
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
