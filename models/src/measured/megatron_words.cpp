#include "pipewright/models/measured/megatron_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "option_effects.hpp"
#include "pipewright/plan/cluster/device_kind.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/split.hpp"
#include "run_row.hpp"
#include "settings.hpp"

namespace pipewright::models {
namespace {

constexpr int bert_vocabulary = 28996;  // of cased word pieces, if the row gives none
constexpr int newest_software = 99991231;
/// Files of these machines were moved on 2025-10-12; their values were measured before June.
constexpr std::string_view moved_platform = "dgxa100_dracooci";
constexpr int moved_before = 20250531;

/// Rejects options that hold, free or partition memory in ways that are not modeled.
void refuse_uncounted(const TrainerOptions& options, const Settings& arguments) {
  static const std::map<std::string, std::string> uncounted{
      {"use-torch-fsdp2", "weights are sharded by torch"},
      {"use-megatron-fsdp", "weights are sharded"},
      {"use-custom-fsdp", "weights are sharded"},
      {"optimizer-cpu-offload", "a part of the optimizer's state is on the host"},
      {"cpu-offloading", "a part of the activations is on the host"},
      {"cpu-offloading-num-layers", "a part of the activations is on the host"},
      {"fine-grained-activation-offloading", "a part of the activations is on the host"},
      {"export-kd-teacher-load", "a teacher's memory adds to the student's"}};
  for (const auto& [option, why] : uncounted)
    if (arguments.has(option))
      refuse_column("other_args", option, why + ", which is not supported");
  for (const auto& [option, value] : arguments.all())
    if (const std::string why = refusal_of(option, value); !why.empty())
      refuse_column("other_args", option, why);
  const std::string& graphs = options.cuda_graph;  // a graph of a whole iteration keeps no memory
                                                   // inside
  if (!graphs.empty() && graphs != "no" && graphs != "transformer_engine" && graphs != "full")
    refuse_column("cuda_graph", graphs, "the memory of such graphs is not supported");
  if (!options.optimizer.empty() && options.optimizer != "adam")
    refuse_column("optimizer", options.optimizer, "only adam is supported");
}

/// Returns the meaning of a column's word.
template <class Value>
Value meaning_of(const std::string& column, const std::string& word,
                 const std::vector<std::pair<std::string, Value>>& meanings) {
  std::vector<std::string> known;
  for (const auto& [name, value] : meanings) {
    if (name == word)
      return value;
    if (!name.empty())
      known.push_back(name);
  }
  refuse_column(column, word, plan::listed(known) + " are supported");
}

MegatronFamily family_of(const std::string& word) {
  using F = MegatronFamily;
  return meaning_of<F>("family", word,
                       {{"", F::Decoder},
                        {"gpt", F::Decoder},
                        {"moe", F::Decoder},
                        {"mixtral", F::Decoder},
                        {"deepseek", F::Decoder},
                        {"nemotron", F::Decoder},
                        {"hybrid", F::Decoder},
                        {"bert", F::Encoder},
                        {"t5", F::EncoderDecoder}});
}

/// Returns Megatron's default order of layers if only the ratios of attention and feed-forward are
/// given: attention layers at equal distances, then feed-forward layers among the remaining ones.
std::string pattern_of_shares(int layers, double attention, double feed_forward) {
  std::string pattern(static_cast<std::size_t>(layers), 'M');
  const auto place = [&](char letter, double distance) {
    double left = distance;
    for (char& layer : pattern)
      if (layer == 'M' && left < 0.5) {
        layer = letter;
        left += distance;
      } else if (layer == 'M') {
        left -= 1;
      }
  };
  const double attentions = std::nearbyint(layers * attention);
  const double feed_forwards = std::nearbyint(layers * feed_forward);
  place('*', (layers - attentions) / (attentions + 1));
  if (feed_forwards > 0)
    place('-', (layers - attentions - feed_forwards) / feed_forwards);
  return pattern;
}

/// Appends the pattern of the predictions to the main one, if the older option gives it.
std::string with_predictions(std::string pattern, const Settings& arguments) {
  const std::string prediction = arguments.text("mtp-hybrid-override-pattern");
  if (prediction.empty() || pattern.find('/') != std::string::npos)
    return pattern;
  constexpr double most = 100;
  const double depths = std::min(most, arguments.number("mtp-num-layers", 0));
  for (int depth = 0; depth < depths; ++depth)
    pattern += "/" + prediction;
  return pattern;
}

void set_hybrid(MegatronRun& run, const Settings& arguments) {
  if (run.layer_pattern.empty())
    return;
  run.family = MegatronFamily::Hybrid;
  run.shared_prediction = arguments.has("mtp-use-repeated-layer");
  MambaSizes& mamba = run.mamba;
  mamba.head_channels = std::max(1, arguments.whole("mamba-head-dim", mamba.head_channels));
  mamba.groups = arguments.whole("mamba-num-groups", mamba.groups);
  mamba.states = arguments.whole("mamba-state-dim", mamba.states);
  mamba.heads =
      arguments.whole("mamba-num-heads", 2 * run.training.model.hidden / mamba.head_channels);
}

/// Returns the padded vocabulary. A row may omit it for BERT's word pieces.
int vocabulary_of(const MeasuredRun& run, MegatronFamily family) {
  const int told = run.options.padded_vocabulary;
  const int own =
      family == MegatronFamily::Encoder ? bert_vocabulary : run.training.model.vocabulary;
  return told > 0 ? told : padded_vocabulary(own, vocabulary_multiple * run.cut.tensor);
}

int width_of(const std::string& type) {
  if (is_half(type))
    return 2;
  return type == "fp8" ? 1 : 4;
}

void set_precision(MegatronRun& run, const TrainerOptions& options, const Settings& arguments) {
  switch (run.training.precision) {
    case plan::ProductPrecision::Single:
      run.precision = MegatronPrecision::Full;
      break;
    case plan::ProductPrecision::Half:
      run.precision = MegatronPrecision::Half;
      break;
    case plan::ProductPrecision::Float8:
      run.precision = MegatronPrecision::Float8;
      break;
    case plan::ProductPrecision::Float4:
      refuse_column("precision", options.precision, "fp32, fp16, bf16 and fp8 are supported");
  }
  const std::string& recipe = options.fp8_recipe;
  run.float8_parameters = options.fp8_parameters;
  run.float8_one_copy =
      run.gpu == GpuKind::Blackwell && (recipe == "tensorwise" || recipe == "delayed");
  const bool halves = is_half(options.gradient_dtype) || arguments.has("grad-reduce-in-bf16");
  run.gradient_bytes = halves ? 2 : 4;
  run.keeps_wide_gradients =
      arguments.has("use-precision-aware-optimizer") || arguments.has("main-params-dtype");
  run.main_weight_bytes = width_of(arguments.text("main-params-dtype"));
  run.state_bytes =
      width_of(arguments.text("exp-avg-dtype")) + width_of(arguments.text("exp-avg-sq-dtype"));
}

void set_kernels(MegatronRun& run, const TrainerOptions& options, const Settings& arguments) {
  using A = AttentionBackend;
  run.attention = meaning_of<A>("attention_backend", options.attention_backend,
                                {{"", A::Auto},
                                 {"auto", A::Auto},
                                 {"flash", A::Flash},
                                 {"fused", A::Fused},
                                 {"unfused", A::Unfused},
                                 {"local", A::Local}});
  run.transformer_engine = meaning_of<bool>(
      "transformer_impl", options.implementation,
      {{"transformer_engine", true}, {"inference_optimized", true}, {"local", false}});
  run.loss_fusion = meaning_of<LossFusion>("cross_entropy_fusion", options.cross_entropy_fusion,
                                           {{"", LossFusion::None},
                                            {"no", LossFusion::None},
                                            {"native", LossFusion::Native},
                                            {"te", LossFusion::TransformerEngine}});
  run.bias = options.bias;
  run.attention_dropout = options.attention_dropout > 0;
  run.wide_residual = options.fp32_residual;
  run.fused_activation = !arguments.has("no-bias-swiglu-fusion");
  run.fused_weighted_activation = arguments.has("use-fused-weighted-squared-relu");
  run.fused_softmax = !arguments.has("no-masked-softmax-fusion");
  run.fused_weight_gradients = options.fused_gradient_accumulation;
  run.deferred_head_gradients = arguments.whole("wgrad-deferral-limit", 0);
  run.grouped_experts = options.grouped_products;
  run.expert_capacity = arguments.number("moe-expert-capacity-factor", 0);
  run.overlap_streams = run.cut.overlaps_sums || arguments.has("tp-comm-overlap") ? 3 : 1;
}

/// Parses ":4096:2:16:8": pairs of a size in KiB and a count.
long long workspace_of(const std::string& config) {
  const auto words = plan::split(config, ':');
  long long bytes = 0;
  for (std::size_t at = 1; at + 1 < words.size(); at += 2)
    bytes += 1024LL * std::atoi(words[at].c_str()) * std::atoi(words[at + 1].c_str());
  return bytes;
}

GpuKind gpu_of(const std::string& gpu) {
  const std::string kind = plan::device_kind(gpu);
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, kind) != names.end();
  };
  if (is_one_of({"A100", "A800"}))
    return GpuKind::Ampere;
  if (is_one_of({"H100", "H200", "H800", "GH200"}))
    return GpuKind::Hopper;
  if (is_one_of({"B200", "B300", "GB200", "GB300"}))
    return GpuKind::Blackwell;
  refuse_column("gpu", gpu, "A100, H100, H200, B200, GB200 and their variants are supported");
}

/// Converts "2025-08-17" to 20250817.
int date_of(const TrainerOptions& options) {
  std::string digits = options.date;
  std::erase(digits, '-');
  const int told = digits.size() == 8 ? std::atoi(digits.c_str()) : newest_software;
  return options.platform.starts_with(moved_platform) ? std::min(told, moved_before) : told;
}

void set_machine(MegatronRun& run, const TrainerOptions& options) {
  const Settings environment(options.environment, ' ');
  run.gpu = gpu_of(options.device);
  run.date = date_of(options);
  run.one_node = options.nodes == 1;
  run.cublas_workspace = workspace_of(environment.text("CUBLAS_WORKSPACE_CONFIG"));
  run.expandable_segments =
      environment.text("PYTORCH_CUDA_ALLOC_CONF").find("expandable_segments:True") !=
      std::string::npos;
  run.deterministic = options.deterministic;
  run.graphs = options.cuda_graph == "transformer_engine";
  run.resumed = options.repeat > 1;
  run.first_step_only = options.test_type == "checkpoint-consistency";
}

void set_recomputation(MegatronRun& run, const TrainerOptions& options) {
  run.recompute_modules.insert(options.recompute_modules.begin(), options.recompute_modules.end());
  run.recompute_layers = std::max(1, options.recompute_layers);
  run.recompute_block = options.recompute_method == "block";
}

}  // namespace

bool tells_megatron(const MeasuredRun& run) { return !run.options.implementation.empty(); }

std::string refused_argument(const MeasuredRun& run) { return refusal_in(run.options.arguments); }

std::string hybrid_pattern(const std::string& arguments, int layers) {
  const Settings settings(arguments, ';');
  for (const char* const option : {"hybrid-layer-pattern", "hybrid-override-pattern"})
    if (settings.has(option))
      return with_predictions(settings.text(option), settings);
  if (settings.has("hybrid-attention-ratio") || settings.has("hybrid-mlp-ratio"))
    return pattern_of_shares(layers, settings.number("hybrid-attention-ratio", 0),
                             settings.number("hybrid-mlp-ratio", 0));
  return {};
}

MegatronRun megatron_run_of(const MeasuredRun& measured) {
  const TrainerOptions& options = measured.options;
  const Settings arguments(options.arguments, ';');
  refuse_uncounted(options, arguments);
  MegatronRun run;
  run.training = measured.training;
  run.cut = measured.cut;
  run.cut.sequence_parallel = run.cut.sequence_parallel && run.cut.tensor > 1;
  run.rank = run.cut.pipeline - 1;
  run.family = family_of(options.family);
  run.training.model.vocabulary = vocabulary_of(measured, run.family);
  run.training.model.head_norms = arguments.has("qk-layernorm");
  run.decoder_sequence = arguments.whole("decoder-seq-length", run.training.sequence);
  run.optimizer_groups = std::max(1, arguments.whole("num-distributed-optimizer-instances", 1));
  run.layer_pattern = hybrid_pattern(options.arguments, run.training.model.layers);
  set_hybrid(run, arguments);
  set_machine(run, options);
  set_precision(run, options, arguments);
  set_kernels(run, options, arguments);
  set_recomputation(run, options);
  return run;
}

}  // namespace pipewright::models
