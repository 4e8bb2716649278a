#include "folder_links.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <regex>

namespace pipewright::engine {
namespace {

using plan::HuggingFaceShape;
using plan::TransformerConfig;

/// A family's names for its modules. A layer's modules are prefixed with `layer` and its index.
struct FamilyNames {
  std::string embedding = "model.embed_tokens";
  std::string positions{};
  std::string layer = "model.layers.";
  std::string norm1 = "input_layernorm", norm2 = "post_attention_layernorm";
  std::string post_norm1{}, post_norm2{};
  std::string query = "self_attn.q_proj", key = "self_attn.k_proj", value = "self_attn.v_proj";
  std::string project = "self_attn.o_proj";
  std::string all_three{};  // queries, keys and values fused
  std::string up = "mlp.up_proj", gate = "mlp.gate_proj", down = "mlp.down_proj";
  std::string gate_and_up{};  // fused
  std::string router = "mlp.gate", experts = "mlp.experts.", shared = "mlp.shared_experts.";
  std::string expert_up = "up_proj", expert_gate = "gate_proj", expert_down = "down_proj";
  std::string norm = "model.norm";
  std::string head = "lm_head";
  bool turned = false;
};

FamilyNames names_of(const std::string& type) {
  FamilyNames names;
  if (type == "gemma2" || type == "gemma3_text") {
    names.post_norm1 = names.norm2;
    names.norm2 = "pre_feedforward_layernorm";
    names.post_norm2 = "post_feedforward_layernorm";
  } else if (type == "phi3") {
    names.all_three = "self_attn.qkv_proj";
    names.gate_and_up = "mlp.gate_up_proj";
  } else if (type == "mixtral") {
    names.router = "block_sparse_moe.gate";
    names.experts = "block_sparse_moe.experts.";
    names.expert_up = "w3";
    names.expert_gate = "w1";
    names.expert_down = "w2";
  } else if (type == "gpt2") {
    names.embedding = "transformer.wte";
    names.positions = "transformer.wpe";
    names.layer = "transformer.h.";
    names.norm1 = "ln_1";
    names.norm2 = "ln_2";
    names.all_three = "attn.c_attn";
    names.project = "attn.c_proj";
    names.up = "mlp.c_fc";
    names.down = "mlp.c_proj";
    names.norm = "transformer.ln_f";
    names.turned = true;
  }
  return names;
}

/// Collects the links of one layer.
class Links {
 public:
  Links(const TransformerConfig& config, std::string prefix, bool turned)
      : config_(config), prefix_(std::move(prefix)), turned_(turned) {}

  void whole(const std::string& parameter, const std::string& tensor,
             std::vector<std::int64_t> sizes) {
    const std::int64_t rows = sizes.front();
    links_.push_back({.parameter = parameter,
                      .tensor = prefix_ + tensor,
                      .sizes = std::move(sizes),
                      .rows = rows});
  }
  void norm(const std::string& parameter, const std::string& tensor, std::int64_t width) {
    whole(parameter + ".weight", tensor + ".weight", {width});
    if (config_.norm == plan::NormKind::Layer)
      whole(parameter + ".bias", tensor + ".bias", {width});
  }
  struct Part {
    std::int64_t begin = 0, rows = 0, all = 0;  // outputs of the tensor
  };
  void linear(const std::string& parameter, const std::string& tensor, const Part& part,
              std::int64_t in, bool has_bias) {
    links_.push_back({.parameter = parameter + ".weight",
                      .tensor = prefix_ + tensor + ".weight",
                      .sizes = turned_ ? std::vector{in, part.all} : std::vector{part.all, in},
                      .turned = turned_,
                      .begin = part.begin,
                      .rows = part.rows});
    if (has_bias)
      links_.push_back({.parameter = parameter + ".bias",
                        .tensor = prefix_ + tensor + ".bias",
                        .sizes = {part.all},
                        .begin = part.begin,
                        .rows = part.rows});
  }
  void linear(const std::string& parameter, const std::string& tensor, std::int64_t out,
              std::int64_t in, bool has_bias) {
    linear(parameter, tensor, Part{0, out, out}, in, has_bias);
  }
  void of_expert(int expert, const std::string& parameter, const std::string& tensor,
                 std::int64_t out, std::int64_t in) {
    linear(parameter, tensor, out, in, /*has_bias=*/false);
    links_.back().expert = expert;
  }

  std::vector<FolderLink> take() { return std::move(links_); }

 private:
  const TransformerConfig& config_;
  std::string prefix_;
  bool turned_;
  std::vector<FolderLink> links_;
};

void add_attention_links(const TransformerConfig& c, const FamilyNames& names, Links& links) {
  const std::int64_t queries = std::int64_t{c.heads} * c.head_channels;
  const std::int64_t keys = std::int64_t{c.kv_heads} * c.head_channels;
  const std::int64_t values = std::int64_t{c.kv_heads} * c.value_channels;
  const std::int64_t all = queries + keys + values;
  const bool in_one = !names.all_three.empty();
  const auto add = [&](const char* parameter, const std::string& own, std::int64_t begin,
                       std::int64_t rows) {
    if (in_one)
      links.linear(parameter, names.all_three, Links::Part{begin, rows, all}, c.hidden,
                   c.query_bias);
    else
      links.linear(parameter, own, rows, c.hidden, c.query_bias);
  };
  add("attention.query", names.query, 0, queries);
  add("attention.key", names.key, queries, keys);
  add("attention.value", names.value, queries + keys, values);
  if (!c.head_norms)
    return;
  links.norm("attention.query_norm", "self_attn.q_norm", c.head_channels);
  links.norm("attention.key_norm", "self_attn.k_norm", c.head_channels);
}

void add_latent_links(const TransformerConfig& c, Links& links) {
  const std::int64_t key = std::int64_t{c.head_channels} + c.rope_channels;
  if (c.q_rank > 0) {
    links.linear("attention.query_down", "self_attn.q_a_proj", c.q_rank, c.hidden, c.query_bias);
    links.norm("attention.query_norm", "self_attn.q_a_layernorm", c.q_rank);
    links.linear("attention.query", "self_attn.q_b_proj", c.heads * key, c.q_rank, false);
  } else {
    links.linear("attention.query", "self_attn.q_proj", c.heads * key, c.hidden, false);
  }
  links.linear("attention.latent_down", "self_attn.kv_a_proj_with_mqa",
               std::int64_t{c.kv_rank} + c.rope_channels, c.hidden, c.query_bias);
  links.norm("attention.latent_norm", "self_attn.kv_a_layernorm", c.kv_rank);
  links.linear("attention.latent_up", "self_attn.kv_b_proj",
               std::int64_t{c.heads} * (std::int64_t{c.head_channels} + c.value_channels),
               c.kv_rank, false);
}

void add_dense_links(const TransformerConfig& c, const FamilyNames& names, Links& links) {
  const std::int64_t width = c.feed_forward, hidden = c.hidden;
  if (!names.gate_and_up.empty()) {
    links.linear("feed_forward.gate", names.gate_and_up, Links::Part{0, width, 2 * width}, hidden,
                 c.feed_forward_bias);
    links.linear("feed_forward.up", names.gate_and_up, Links::Part{width, width, 2 * width}, hidden,
                 c.feed_forward_bias);
  } else {
    links.linear("feed_forward.up", names.up, width, hidden, c.feed_forward_bias);
    if (c.gated)
      links.linear("feed_forward.gate", names.gate, width, hidden, c.feed_forward_bias);
  }
  links.linear("feed_forward.down", names.down, hidden, width, c.feed_forward_bias);
}

void add_mixture_links(const TransformerConfig& c, const FamilyNames& names, Links& links) {
  const std::int64_t width = c.expert_feed_forward, hidden = c.hidden;
  links.linear("feed_forward.router", names.router, c.experts, hidden, false);
  if (c.router_bias)
    links.whole("feed_forward.balance", names.router + ".e_score_correction_bias", {c.experts});
  for (int expert = 0; expert < c.experts; ++expert) {
    const std::string one = fmt::format("{}{}.", names.experts, expert);
    links.of_expert(expert, "feed_forward.up", one + names.expert_up, width, hidden);
    links.of_expert(expert, "feed_forward.gate", one + names.expert_gate, width, hidden);
    links.of_expert(expert, "feed_forward.down", one + names.expert_down, hidden, width);
  }
  const std::int64_t shared = c.shared_feed_forward;
  if (shared == 0)
    return;
  links.linear("feed_forward.shared.up", names.shared + "up_proj", shared, hidden,
               c.feed_forward_bias);
  links.linear("feed_forward.shared.gate", names.shared + "gate_proj", shared, hidden,
               c.feed_forward_bias);
  links.linear("feed_forward.shared.down", names.shared + "down_proj", hidden, shared,
               c.feed_forward_bias);
}

std::vector<FolderLink> links_of_decoder_layer(const TransformerConfig& c, const FamilyNames& names,
                                               int layer) {
  Links links(c, fmt::format("{}{}.", names.layer, layer), names.turned);
  links.norm("norm1", names.norm1, c.hidden);
  if (c.is_latent())
    add_latent_links(c, links);
  else
    add_attention_links(c, names, links);
  links.linear("attention.project", names.project, c.hidden,
               std::int64_t{c.heads} * c.value_channels, c.projection_bias);
  links.norm("norm2", names.norm2, c.hidden);
  if (c.post_norms) {
    links.norm("post_norm1", names.post_norm1, c.hidden);
    links.norm("post_norm2", names.post_norm2, c.hidden);
  }
  if (c.has_experts(layer))
    add_mixture_links(c, names, links);
  else
    add_dense_links(c, names, links);
  return links.take();
}

}  // namespace

at::Tensor FolderLink::part_in(const at::Tensor& whole) const {
  const at::Tensor outputs_first = turned ? whole.t() : whole;
  return outputs_first.size(0) == rows ? outputs_first : outputs_first.narrow(0, begin, rows);
}

std::vector<FolderLink> folder_links(const HuggingFaceShape& shape, int layer) {
  const TransformerConfig& c = shape.transformer.config;
  const FamilyNames names = names_of(shape.type);
  if (layer > 0 && layer <= c.layers)
    return links_of_decoder_layer(c, names, layer - 1);
  Links links(c, "", /*turned=*/false);
  if (layer == 0) {
    links.whole("tokens.weight", names.embedding + ".weight", {c.vocabulary, c.hidden});
    if (c.learned_positions)
      links.whole("positions.weight", names.positions + ".weight", {c.longest, c.hidden});
  } else {
    links.norm("norm", names.norm, c.hidden);
    links.whole("logits.weight", (c.tied ? names.embedding : names.head) + ".weight",
                {c.vocabulary, c.hidden});
  }
  return links.take();
}

bool is_left_over(const HuggingFaceShape& shape, const std::string& tensor) {
  const TransformerConfig& c = shape.transformer.config;
  static const std::regex buffer(R"((.*\.)?(rotary_emb\.inv_freq|attn\.(masked_)?bias))");
  if (std::regex_match(tensor, buffer) || (c.tied && tensor == head_tensor))
    return true;
  static const std::regex of_layer(R"(model\.layers\.(\d{1,6})\..*)");
  std::smatch match;
  return c.predictions > 0 && std::regex_match(tensor, match, of_layer) &&
         std::stoi(match[1]) >= c.layers && std::stoi(match[1]) < c.layers + c.predictions;
}

}  // namespace pipewright::engine
