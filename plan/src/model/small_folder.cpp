#include "pipewright/plan/model/small_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "pipewright/plan/bare_name.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/hugging_face.hpp"

namespace pipewright::plan {
namespace {

/// Returns the fields that the models of a kind have in common.
const std::map<std::string, const char*>& kinds() {
  static const std::map<std::string, const char*> kinds{
      {"llama", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "rope_scaling": null,
        "attention_bias": false, "mlp_bias": false, "attention_dropout": 0.0,
        "tie_word_embeddings": false})"},
      {"mistral", R"({"architectures": ["MistralForCausalLM"], "model_type": "mistral",
        "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
        "attention_dropout": 0.0, "tie_word_embeddings": false})"},
      {"mixtral", R"({"architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
        "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
        "sliding_window": null, "num_local_experts": 8, "num_experts_per_tok": 2,
        "attention_dropout": 0.0, "tie_word_embeddings": false})"},
      {"qwen2", R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
        "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
        "use_sliding_window": false, "attention_dropout": 0.0, "tie_word_embeddings": false})"},
      {"qwen3", R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
        "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "head_dim": 128,
        "attention_bias": false, "use_sliding_window": false, "attention_dropout": 0.0,
        "tie_word_embeddings": false})"},
      {"qwen3_moe", R"({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
        "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "head_dim": 128,
        "attention_bias": false, "use_sliding_window": false, "attention_dropout": 0.0,
        "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [],
        "tie_word_embeddings": false})"},
      {"gemma2", R"({"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2",
        "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
        "head_dim": 256, "query_pre_attn_scalar": 256, "sliding_window": 4096,
        "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "attention_bias": false,
        "attention_dropout": 0.0, "tie_word_embeddings": true})"},
      {"gemma3_text", R"({"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text",
        "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0, "head_dim": 256, "query_pre_attn_scalar": 256,
        "sliding_window": 512, "sliding_window_pattern": 6, "attention_bias": false,
        "attention_dropout": 0.0, "tie_word_embeddings": true})"},
      {"phi3", R"({"architectures": ["Phi3ForCausalLM"], "model_type": "phi3",
        "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "rope_scaling": null,
        "attention_dropout": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "pad_token_id": null,
        "tie_word_embeddings": false})"},
      {"gpt2", R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05, "resid_pdrop": 0.1,
        "embd_pdrop": 0.1, "attn_pdrop": 0.1, "n_positions": 1024, "vocab_size": 50257})"},
      {"deepseek_v2", R"({"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2",
        "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
        "rope_scaling": {"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1,
          "mscale": 0.707, "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096},
        "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "moe_layer_freq": 1, "first_k_dense_replace": 1, "n_shared_experts": 2,
        "num_experts_per_tok": 6, "norm_topk_prob": false, "attention_bias": false,
        "attention_dropout": 0.0, "tie_word_embeddings": false})"},
      {"deepseek_v3", R"({"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
        "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
        "rope_scaling": {"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1,
          "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096},
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "moe_layer_freq": 1, "first_k_dense_replace": 3, "n_shared_experts": 1,
        "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4, "topk_method": "noaux_tc",
        "scoring_func": "sigmoid", "norm_topk_prob": true, "routed_scaling_factor": 2.5,
        "num_nextn_predict_layers": 1, "attention_bias": false, "attention_dropout": 0.0,
        "tie_word_embeddings": false})"}};
  return kinds;
}

/// The sizes of one model.
struct Folder {
  const char* name;
  const char* kind;
  int layers, hidden, heads, kv_heads, feed_forward, vocabulary, longest;
  const char* more = "{}";
};

constexpr auto llama31_rope =
    R"({"rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
        "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}})";

/// Sizes from the config.json of each model on Hugging Face.
constexpr Folder folders[] = {
    {"llama2-7b", "llama", 32, 4096, 32, 32, 11008, 32000, 4096},
    {"llama2-13b", "llama", 40, 5120, 40, 40, 13824, 32000, 4096},
    {"llama2-70b", "llama", 80, 8192, 64, 8, 28672, 32000, 4096},
    {"llama3-8b", "llama", 32, 4096, 32, 8, 14336, 128256, 8192, R"({"rope_theta": 500000.0})"},
    {"llama3-70b", "llama", 80, 8192, 64, 8, 28672, 128256, 8192, R"({"rope_theta": 500000.0})"},
    {"llama3.1-8b", "llama", 32, 4096, 32, 8, 14336, 128256, 131072, llama31_rope},
    {"llama3.1-70b", "llama", 80, 8192, 64, 8, 28672, 128256, 131072, llama31_rope},
    {"llama3.1-405b", "llama", 126, 16384, 128, 8, 53248, 128256, 131072, llama31_rope},
    {"llama3.2-1b", "llama", 16, 2048, 32, 8, 8192, 128256, 131072,
     R"({"rope_theta": 500000.0, "tie_word_embeddings": true, "rope_scaling": {
         "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 8192}})"},
    {"llama3.3-70b", "llama", 80, 8192, 64, 8, 28672, 128256, 131072, llama31_rope},
    {"mistral-7b", "mistral", 32, 4096, 32, 8, 14336, 32000, 32768, R"({"sliding_window": 4096})"},
    {"mixtral-8x7b", "mixtral", 32, 4096, 32, 8, 14336, 32000, 32768},
    {"mixtral-8x22b", "mixtral", 56, 6144, 48, 8, 16384, 32000, 65536},
    {"qwen2-7b", "qwen2", 28, 3584, 28, 4, 18944, 152064, 131072},
    {"qwen2.5-0.5b", "qwen2", 24, 896, 14, 2, 4864, 151936, 32768,
     R"({"tie_word_embeddings": true})"},
    {"qwen2.5-7b", "qwen2", 28, 3584, 28, 4, 18944, 152064, 131072},
    {"qwen3-0.6b", "qwen3", 28, 1024, 16, 8, 3072, 151936, 40960,
     R"({"tie_word_embeddings": true})"},
    {"qwen3-8b", "qwen3", 36, 4096, 32, 8, 12288, 151936, 40960},
    {"qwen3-30b-a3b", "qwen3_moe", 48, 2048, 32, 4, 6144, 151936, 40960,
     R"({"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768})"},
    {"gemma2-2b", "gemma2", 26, 2304, 8, 4, 9216, 256000, 8192},
    {"gemma2-9b", "gemma2", 42, 3584, 16, 8, 14336, 256000, 8192},
    {"gemma3-1b", "gemma3_text", 26, 1152, 4, 1, 6912, 262144, 32768},
    {"phi3-mini", "phi3", 32, 3072, 32, 32, 8192, 32064, 4096, R"({"sliding_window": 2047})"},
    {"gpt2", "gpt2", 12, 768, 12, 12, 3072, 50257, 1024},
    {"gpt2-xl", "gpt2", 48, 1600, 25, 25, 6400, 50257, 1024},
    {"deepseek-v2", "deepseek_v2", 60, 5120, 128, 128, 12288, 102400, 163840,
     R"({"q_lora_rank": 1536, "moe_intermediate_size": 1536, "n_routed_experts": 160,
         "topk_method": "group_limited_greedy", "n_group": 8, "topk_group": 3,
         "routed_scaling_factor": 16.0})"},
    {"deepseek-v2-lite", "deepseek_v2", 27, 2048, 16, 16, 10944, 102400, 163840,
     R"({"q_lora_rank": null, "moe_intermediate_size": 1408, "n_routed_experts": 64,
         "topk_method": "greedy", "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0})"},
    {"deepseek-v3", "deepseek_v3", 61, 7168, 128, 128, 18432, 129280, 163840,
     R"({"moe_intermediate_size": 2048, "n_routed_experts": 256})"}};

const Folder& folder_named(const std::string& name) {
  for (const Folder& folder : folders)
    if (bare_name(folder.name) == bare_name(name))
      return folder;
  const auto known = known_folders();
  throw InputError(fmt::format("--init: {} is not known{} (possible: {})", name,
                               did_you_mean(name, known), listed(known)));
}

Json large_config(const Folder& folder) {
  Json config = Json::parse(kinds().at(folder.kind));
  config.update(Json::parse(folder.more));
  config["vocab_size"] = folder.vocabulary;
  if (std::string(folder.kind) == "gpt2") {
    config.update({{"n_layer", folder.layers},
                   {"n_embd", folder.hidden},
                   {"n_head", folder.heads},
                   {"n_inner", folder.feed_forward},
                   {"n_positions", folder.longest}});
    return config;
  }
  config.update({{"num_hidden_layers", folder.layers},
                 {"hidden_size", folder.hidden},
                 {"num_attention_heads", folder.heads},
                 {"num_key_value_heads", folder.kv_heads},
                 {"intermediate_size", folder.feed_forward},
                 {"max_position_embeddings", folder.longest}});
  return config;
}

/// Scales a width in the proportion of the hidden sizes, to a multiple of 8.
int narrowed(int width, double share) {
  return std::max(8, static_cast<int>(std::lround(width * share / 8)) * 8);
}

int largest_divisor_up_to(int number, int most) {
  int divisor = std::clamp(most, 1, number);
  while (number % divisor != 0)
    --divisor;
  return divisor;
}

/// Narrows GPT-2, whose number of heads must divide its width.
void narrow_gpt2(Json& config, int hidden, double share) {
  const int heads = std::max(2, static_cast<int>(std::lround(config["n_head"].get<int>() * share)));
  config["n_head"] = largest_divisor_up_to(hidden, heads);
  config["n_inner"] = narrowed(config["n_inner"].get<int>(), share);
  config["n_embd"] = hidden;
}

/// Narrows the heads. Latent attention keeps the channels of a head.
void narrow_heads(Json& config, double share) {
  const int heads = config["num_attention_heads"], kv_heads = config["num_key_value_heads"];
  const int channels = config.value("head_dim", config["hidden_size"].get<int>() / heads);
  const bool is_latent = config.contains("kv_lora_rank");
  const int fewer = static_cast<int>(std::lround(heads * share));
  const int left = fewer >= 2 ? fewer : std::min(heads, 4);
  config["num_attention_heads"] = left;
  // Two remain for tensor parallelism if the large model has that many.
  config["num_key_value_heads"] =
      largest_divisor_up_to(left, std::max(std::min(2, kv_heads), left * kv_heads / heads));
  if (is_latent)
    return;
  const int kept = fewer >= 2 ? channels : narrowed(channels * heads / left, share);
  config["head_dim"] = kept;
  if (config.value("query_pre_attn_scalar", 0) == channels)
    config["query_pre_attn_scalar"] = kept;
}

void narrow(Json& config, int hidden) {
  const bool is_gpt2 = config.contains("n_embd");
  const int large = config[is_gpt2 ? "n_embd" : "hidden_size"];
  const double share = 1.0 * hidden / large;
  if (is_gpt2)
    return narrow_gpt2(config, hidden, share);
  narrow_heads(config, share);
  config["hidden_size"] = hidden;
  for (const char* width :
       {"intermediate_size", "moe_intermediate_size", "q_lora_rank", "kv_lora_rank"})
    if (config.contains(width) && !config[width].is_null())
      config[width] = narrowed(config[width].get<int>(), share);
}

void shorten(Json& config, int layers) {
  config[config.contains("n_layer") ? "n_layer" : "num_hidden_layers"] = layers;
  if (config.contains("first_k_dense_replace"))
    config["first_k_dense_replace"] =
        std::min(config["first_k_dense_replace"].get<int>(), std::max(0, layers - 1));
}

}  // namespace

std::vector<std::string> known_folders() {
  std::vector<std::string> names;
  for (const Folder& folder : folders)
    names.emplace_back(folder.name);
  return names;
}

Json small_config(const std::string& name, const SmallSizes& sizes) {
  Json config = large_config(folder_named(name));
  if (sizes.layers)
    shorten(config, *sizes.layers);
  if (sizes.hidden)
    narrow(config, *sizes.hidden);
  if (sizes.vocabulary)
    config["vocab_size"] = *sizes.vocabulary;
  const auto document = JsonDocument::parse(config.dump(2), "--init " + name);
  hugging_face_model(document);  // throws if the model is not possible
  return config;
}

}  // namespace pipewright::plan
