#include "trainers/megatron_options.hpp"

#include <fmt/format.h>

#include "measured/option_effects.hpp"

namespace pipewright::models {
namespace {

constexpr const char* computed_otherwise =
    "changes what layers compute, not their sizes: these figures and written scenarios lack it";

/// Returns the word after `NAME=` or a YAML file's `NAME:`, without quotes; empty if there is none.
std::string variable(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::size_t line = text.rfind('\n', at) + 1;
    std::size_t begin = at + name.size();
    if (text.substr(line, at - line).find('#') != std::string_view::npos || begin >= text.size() ||
        (text[begin] != '=' && text[begin] != ':'))
      continue;
    ++begin;
    while (begin < text.size() && std::string_view(" \"'").find(text[begin]) != std::string::npos)
      ++begin;
    const std::size_t end = std::min(text.find_first_of(" \"'\r\n\t;\\", begin), text.size());
    return std::string(text.substr(begin, end - begin));
  }
  return {};
}

std::string environment_of(std::string_view text) {
  std::string environment;
  for (const char* const name : {"CUBLAS_WORKSPACE_CONFIG", "PYTORCH_CUDA_ALLOC_CONF"})
    if (const std::string value = variable(text, name); !value.empty())
      environment += fmt::format("{}{}={}", environment.empty() ? "" : " ", name, value);
  return environment;
}

std::string family_of(MegatronFields& fields, std::string_view text) {
  const auto runs = [&](std::string_view script) {
    return text.find(script) != std::string_view::npos;
  };
  if (runs("pretrain_t5.py") || fields.has("--decoder-seq-length"))
    return "t5";
  if (runs("pretrain_bert.py") || fields.has("--bert-no-binary-head"))
    return "bert";
  for (const char* const option : {"--hybrid-layer-pattern", "--hybrid-override-pattern",
                                   "--hybrid-attention-ratio", "--hybrid-mlp-ratio"})
    if (fields.has(option))
      return "hybrid";
  if (runs("hybrid_stack_spec") || runs("mamba_stack_spec") || runs("pretrain_mamba.py") ||
      runs("pretrain_hybrid.py") || fields.has("--is-hybrid-model"))
    return "hybrid";
  return fields.has("--num-experts") ? "moe" : "gpt";
}

void read_precision(MegatronFields& fields, TrainerOptions& options) {
  const bool half = fields.has("--fp16");
  const std::string rest = fields.has("--bf16") ? "bf16" : half ? "fp16" : "fp32";
  options.precision = rest;
  if (const auto kind = fields.text("--fp8-format"))
    options.precision = fmt::format("fp8-{}+{}", *kind, rest);
  if (const auto kind = fields.text("--fp4-format"))
    options.precision = fmt::format("fp4-{}+{}", *kind, rest);
  const std::string recipe =
      fields.choice("--fp8-recipe", {"delayed", "tensorwise", "mxfp8", "blockwise", "custom"});
  options.fp8_recipe = fields.has("--fp8-format") ? recipe : "";
  options.fp8_parameters = fields.has("--fp8-param-gather") || fields.has("--fp8-param");
  const bool sums_wide = fields.has("--accumulate-allreduce-grads-in-fp32");
  const bool sums_half = fields.has("--grad-reduce-in-bf16");
  options.gradient_dtype = sums_half ? "bf16" : rest == "fp16" && !sums_wide ? "fp16" : "fp32";
  options.optimizer = fields.text("--optimizer").value_or("adam");
}

void read_recomputation(MegatronFields& fields, TrainerOptions& options) {
  if (fields.has("--recompute-method"))
    options.recompute_method = fields.choice("--recompute-method", {"uniform", "block"});
  fields.size_or(options.recompute_layers, "--recompute-num-layers", 0);
  options.recompute_modules = fields.list(
      "--recompute-modules",
      {"core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"});
}

/// Returns the kind of CUDA graphs; "full" for a whole iteration.
std::string graphs_of(MegatronFields& fields) {
  const std::string kind =
      fields.choice("--cuda-graph-impl", {"none", "local", "transformer_engine", "full_iteration"});
  const bool older = fields.has("--enable-cuda-graph"),
             outside = fields.has("--external-cuda-graph");
  bool whole = kind == "full_iteration";
  for (const char* const option : {"--cuda-graph-scope", "--cuda-graph-modules"})
    whole = whole || fields.text(option).value_or("").find("full_iteration") != std::string::npos;
  if (kind == "none" && !older && !outside)
    return "no";
  if (whole)
    return "full";
  return kind == "transformer_engine" || outside ? "transformer_engine" : "local";
}

void read_kernels(MegatronFields& fields, TrainerOptions& options) {
  options.attention_backend =
      fields.choice("--attention-backend", {"auto", "flash", "fused", "unfused", "local"});
  if (fields.has("--use-flash-attn") && !fields.has("--attention-backend"))
    options.attention_backend = "flash";
  options.implementation =
      fields.choice("--transformer-impl", {"transformer_engine", "local", "inference_optimized"});
  options.fused_gradient_accumulation = !fields.has("--no-gradient-accumulation-fusion");
  options.fp32_residual = fields.has("--fp32-residual-connection");
  const std::string fusion = fields.choice("--cross-entropy-fusion-impl", {"native", "te"});
  options.cross_entropy_fusion = fields.has("--cross-entropy-loss-fusion") ? fusion : "no";
  options.grouped_products = fields.has("--moe-grouped-gemm");
  options.dispatcher =
      fields.choice("--moe-token-dispatcher-type", {"allgather", "alltoall", "flex"});
  options.cuda_graph = graphs_of(fields);
  options.deterministic = fields.has("--deterministic-mode");
}

}  // namespace

TrainerOptions megatron_options(MegatronFields& fields, std::string_view text) {
  TrainerOptions options;
  options.family = family_of(fields, text);
  const std::string positions = fields.text("--position-embedding-type").value_or("");
  options.position = fields.has("--no-position-embedding")            ? "none"
                     : fields.has("--use-rotary-position-embeddings") ? "rope"
                     : positions.empty()                              ? "learned_absolute"
                                                                      : positions;
  options.bias = !fields.has("--disable-bias-linear");
  options.attention_dropout = fields.number_or("--attention-dropout", 0.1);
  options.hidden_dropout = fields.number_or("--hidden-dropout", 0.1);
  options.overlaps_gather_with_step = fields.has("--overlap-param-gather-with-optimizer-step");
  options.late_embedding_gradient = fields.has("--defer-embedding-wgrad-compute");
  read_precision(fields, options);
  read_recomputation(fields, options);
  read_kernels(fields, options);
  options.arguments = fields.all();
  options.environment = environment_of(text);
  return options;
}

void check_options(MegatronFields& fields, std::vector<UncountedOption>& uncounted) {
  if (const auto spec = fields.text("--spec"))
    if (const std::string why = refusal_of("spec", *spec); !why.empty())
      fields.refuse("--spec", why);
  if (fields.has("--use-checkpoint-args"))
    uncounted.push_back({"--use-checkpoint-args",
                         "takes sizes from the checkpoint, if it has others than the arguments",
                         true});
  if (fields.has("--quick-geglu"))  // read as a gate, whose activation is another one
    uncounted.push_back({"--quick-geglu", computed_otherwise, true});
  for (const std::string& option : fields.unread()) {
    const std::string name = option.substr(2);
    switch (effect_of(name)) {
      case OptionEffect::None:
      case OptionEffect::Read:
        break;
      case OptionEffect::Refused:
        fields.refuse(option, refusal_of(name, ""));
        break;
      case OptionEffect::Run:
        uncounted.push_back(
            {option, "is not modeled: its effect is not included in these figures", false});
        break;
      case OptionEffect::Computed:
        uncounted.push_back({option, computed_otherwise, true});
        break;
      case OptionEffect::Unknown:
        uncounted.push_back(
            {option, "is unknown: its effect is not included in these figures", true});
        break;
    }
  }
}

}  // namespace pipewright::models
