#include "pipewright/plan/measured/megatron_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "csv_table.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

constexpr int bert_vocabulary = 28996;  // of the cased word pieces, where a row leaves it open
constexpr int vocabulary_multiple = 128;  // --make-vocab-size-divisible-by
constexpr int newest_software = 99991231;
/// Tables of these machines were moved on 2025-10-12, and measured before June.
constexpr std::string_view renamed_platform = "dgxa100_dracooci";
constexpr int renamed_before = 20250531;

[[noreturn]] void refuse(const std::string& column, const std::string& value,
                         const std::string& why) {
  throw InputError(fmt::format("{} is \"{}\": {}", column, value, why));
}

std::vector<std::string> words_of(const std::string& text, const std::string& separators) {
  std::vector<std::string> words{""};
  for (const char c : text)
    if (separators.find(c) != std::string::npos)
      words.emplace_back();
    else
      words.back() += c;
  words.erase(std::remove(words.begin(), words.end(), ""), words.end());
  return words;
}

/// Options by name, from "a=1; b; c=x y"; those without a value have an empty one.
std::map<std::string, std::string> options_of(const std::string& text) {
  std::map<std::string, std::string> options;
  for (std::string word : words_of(text, ";")) {
    word.erase(0, word.find_first_not_of(' '));
    const auto equals = word.find('=');
    options[word.substr(0, equals)] =
        equals == std::string::npos ? "" : word.substr(equals + 1);
  }
  return options;
}

/// A row's cells as what they mean.
class Row {
 public:
  explicit Row(const std::map<std::string, std::string>& cells) : cells_(cells) {
    options_ = options_of(text("other_args"));
    for (const std::string& word : words_of(text("env"), " "))
      if (const auto equals = word.find('='); equals != std::string::npos)
        environment_[word.substr(0, equals)] = word.substr(equals + 1);
  }

  std::string text(const std::string& column) const {
    const auto found = cells_.find(column);
    return found == cells_.end() ? "" : found->second;
  }
  bool is_yes(const std::string& column) const { return text(column) == "yes"; }

  int whole(const std::string& column, int otherwise) const {
    const std::string cell = text(column);
    return cell.empty() ? otherwise : number<int>(column, cell);
  }
  double real(const std::string& column, double otherwise) const {
    const std::string cell = text(column);
    return cell.empty() ? otherwise : number<double>(column, cell);
  }

  bool has_option(const std::string& name) const { return options_.count(name) > 0; }
  std::string option(const std::string& name) const {
    const auto found = options_.find(name);
    return found == options_.end() ? "" : found->second;
  }
  int option_whole(const std::string& name, int otherwise) const {
    const std::string value = option(name);
    return value.empty() ? otherwise : number<int>(name, value);
  }
  double option_real(const std::string& name) const {
    const std::string value = option(name);
    return value.empty() ? 0 : number<double>(name, value);
  }
  std::string environment(const std::string& name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? "" : found->second;
  }

 private:
  template <class Number>
  static Number number(const std::string& column, const std::string& cell) {
    Number value{};
    const auto [end, fault] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (fault != std::errc() || end != cell.data() + cell.size() || value < 0)
      refuse(column, cell, "a number is needed here");
    return value;
  }

  const std::map<std::string, std::string>& cells_;
  std::map<std::string, std::string> options_, environment_;
};

template <class Value>
Value meaning(const Row& row, const std::string& column,
              const std::vector<std::pair<std::string, Value>>& meanings) {
  const std::string cell = row.text(column);
  std::vector<std::string> known;
  for (const auto& [word, value] : meanings) {
    if (word == cell)
      return value;
    if (!word.empty())
      known.push_back(word);
  }
  refuse(column, cell, listed(known) + " are accounted for");
}

/// Options that hold, free or share out what nobody has counted.
void refuse_uncounted(const Row& row) {
  static const std::map<std::string, std::string> uncounted{
      {"use-torch-fsdp2", "weights are sharded by torch"},
      {"use-megatron-fsdp", "weights are sharded"},
      {"use-custom-fsdp", "weights are sharded"},
      {"optimizer-cpu-offload", "a part of the optimizer's state is on the host"},
      {"cpu-offloading", "a part of the activations is on the host"},
      {"cpu-offloading-num-layers", "a part of the activations is on the host"},
      {"fine-grained-activation-offloading", "a part of the activations is on the host"},
      {"experimental-attention-variant", "its attention's activations are not known"},
      {"export-kd-teacher-load", "a teacher's memory is beside the student's"},
      {"overlap-moe-expert-parallel-comm", "forwards and backwards run in pairs"},
      {"heterogeneous-layers-config-path", "layers differ by a file"}};
  for (const auto& [option, why] : uncounted)
    if (row.has_option(option))
      refuse("other_args", option, why + ", which is not accounted for");
  if (const std::string graphs = row.text("cuda_graph");
      !graphs.empty() && graphs != "no" && graphs != "transformer_engine")
    refuse("cuda_graph", graphs, "what its graphs keep is not accounted for");
  if (const std::string optimizer = row.text("optimizer"); optimizer != "adam" &&
                                                           !optimizer.empty())
    refuse("optimizer", optimizer, "the state of adam is accounted for");
}

MegatronFamily family_of(const Row& row) {
  const auto family = meaning<MegatronFamily>(row, "family",
                                              {{"", MegatronFamily::Decoder},
                                               {"gpt", MegatronFamily::Decoder},
                                               {"moe", MegatronFamily::Decoder},
                                               {"mixtral", MegatronFamily::Decoder},
                                               {"deepseek", MegatronFamily::Decoder},
                                               {"nemotron", MegatronFamily::Decoder},
                                               {"hybrid", MegatronFamily::Decoder},
                                               {"bert", MegatronFamily::Encoder},
                                               {"t5", MegatronFamily::EncoderDecoder}});
  return family;
}

/// Layers with and without experts: every n-th has them, or a list "([0]*3+[1]*11)" says which.
std::vector<bool> sparse_layers(const Row& row, int layers) {
  const std::string frequency = row.text("moe_layer_freq");
  std::vector<bool> sparse;
  if (frequency.find('[') == std::string::npos) {
    const int every = std::max(1, row.whole("moe_layer_freq", 1));
    for (int layer = 0; layer < layers; ++layer)
      sparse.push_back(layer % every == 0);
    return sparse;
  }
  for (const std::string& run : words_of(frequency, "()+")) {
    const auto close = run.find(']'), times = run.find('*');
    const int count = times == std::string::npos ? 1 : std::atoi(run.c_str() + times + 1);
    if (close == std::string::npos || run.front() != '[')
      refuse("moe_layer_freq", frequency, "a list like ([0]*3+[1]*11) is needed here");
    std::vector<bool> one;
    for (const std::string& flag : words_of(run.substr(1, close - 1), ", "))
      one.push_back(flag == "1");
    for (int i = 0; i < count; ++i)
      sparse.insert(sparse.end(), one.begin(), one.end());
  }
  if (static_cast<int>(sparse.size()) != layers)
    refuse("moe_layer_freq", frequency,
           fmt::format("{} layers, but the model has {}", sparse.size(), layers));
  return sparse;
}

void read_mixture(const Row& row, TransformerConfig& model) {
  model.experts = row.whole("experts", 0);
  if (model.experts == 0)
    return;
  model.experts_per_token = row.whole("experts_per_token", 1);
  model.expert_feed_forward = row.whole("expert_ffn", model.feed_forward);
  model.shared_feed_forward = row.whole("shared_expert_ffn", 0);
  model.sparse = sparse_layers(row, model.layers);
}

void read_latent_attention(const Row& row, TransformerConfig& model) {
  if (!row.is_yes("latent_attention"))
    return;
  model.q_rank = row.whole("q_rank", 0);
  model.kv_rank = row.whole("kv_rank", 0);
  model.head_channels = row.whole("qk_channels", model.head_channels);
  model.rope_channels = row.whole("rope_channels", 0);
  model.value_channels = row.whole("v_channels", model.head_channels);
}

/// What vocab_padded leaves open of BERT's word pieces.
int padded_vocabulary(const Row& row, MegatronFamily family, int tensor) {
  const int told = row.whole("vocab_padded", 0);
  if (told > 0 || family != MegatronFamily::Encoder)
    return told;
  const int multiple = vocabulary_multiple * tensor;
  return (bert_vocabulary + multiple - 1) / multiple * multiple;
}

void read_model(const Row& row, MegatronRun& run) {
  TransformerConfig& model = run.training.model;
  model.layers = row.whole("layers", 0);
  model.hidden = row.whole("hidden", 0);
  model.heads = row.whole("heads", 0);
  if (model.hidden == 0 || model.heads == 0)
    refuse(model.hidden == 0 ? "hidden" : "heads", "", "is needed");
  model.kv_heads = row.whole("kv_heads", model.heads);
  model.head_channels = row.whole("head_channels", model.hidden / model.heads);
  model.value_channels = model.head_channels;
  model.feed_forward = row.whole("ffn", 4 * model.hidden);
  model.gated = row.is_yes("gated");
  model.tied = row.is_yes("tied");
  model.learned_positions = row.text("position") == "learned_absolute";
  model.norm = row.text("norm") == "RMSNorm" ? NormKind::Root : NormKind::Layer;
  model.head_norms = row.has_option("qk-layernorm");
  model.dropout = row.real("hidden_dropout", 0) > 0;
  model.predictions = row.whole("mtp_layers", 0);
  model.vocabulary = padded_vocabulary(row, run.family, run.cut.tensor);
  read_latent_attention(row, model);
  read_mixture(row, model);
}

/// The stage of a pipeline whose memory was read.
int rank_read(const Row& row, const MegatronRun& run) {
  const std::string told = row.text("mem_rank");
  if (told.empty() || told == "last")
    return run.cut.pipeline - 1;
  if (told == "first")
    return 0;
  return row.whole("mem_rank", 0) / run.cut.devices_of_stage() % run.cut.pipeline;
}

/// Pipelines: where a batch is too small for all of them, as many as it has microbatches.
int pipelines(const Row& row, const MegatronRun& run) {
  int told = row.whole("dp", 0);
  if (told == 0)
    told = row.whole("gpus", 0) / (run.cut.tensor * run.cut.pipeline * run.cut.context);
  if (told == 0)
    refuse("dp", "", "how many share the batch and the optimizer's state has to be known");
  return std::clamp(run.training.batch / run.cut.microbatch, 1, told);
}

void read_cut(const Row& row, MegatronRun& run) {
  Cut& cut = run.cut;
  cut.tensor = std::max(1, row.whole("tp", 1));
  cut.pipeline = std::max(1, row.whole("pp", 1));
  cut.context = std::max(1, row.whole("cp", 1));
  cut.expert = std::max(1, row.whole("ep", 1));
  run.expert_tensor = std::max(1, row.whole("etp", cut.tensor));
  cut.chunks = std::max(1, row.whole("chunks", 1));
  cut.microbatch = std::max(1, row.whole("micro_batch", 1));
  cut.zero = row.whole("zero", 0);
  cut.sequence_parallel = row.is_yes("sequence_parallel") && cut.tensor > 1;
  run.training.sequence = row.whole("seq", 0);
  run.training.batch = row.whole("global_batch", 0);
  if (run.training.batch == 0 || run.training.sequence == 0)
    refuse(run.training.batch == 0 ? "global_batch" : "seq", "", "is needed");
  cut.data = pipelines(row, run);
  run.rank = rank_read(row, run);
  run.layout = row.text("pipeline_layout");
  run.first_stage_layers = row.whole("first_stage_layers", 0);
  run.last_stage_layers = row.whole("last_stage_layers", 0);
  run.embedding_is_layer = row.is_yes("embedding_counts_as_layer");
  run.loss_is_layer = row.is_yes("loss_counts_as_layer");
  run.microbatch_group = row.option_whole("microbatch-group-size-per-virtual-pipeline-stage", 0);
  run.optimizer_groups = row.option_whole("num-distributed-optimizer-instances", 1);
}

/// Megatron's own order where only the shares of attention and feed-forward are told: attention at
/// equal distances, then feed-forwards among what is left.
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

void read_pattern(const Row& row, MegatronRun& run) {
  for (const char* const option : {"hybrid-layer-pattern", "hybrid-override-pattern"})
    if (row.has_option(option))
      run.layer_pattern = row.option(option);
  if (run.layer_pattern.empty() &&
      (row.has_option("hybrid-attention-ratio") || row.has_option("hybrid-mlp-ratio")))
    run.layer_pattern = pattern_of_shares(run.training.model.layers,
                                          row.option_real("hybrid-attention-ratio"),
                                          row.option_real("hybrid-mlp-ratio"));
  if (run.layer_pattern.empty())
    return;
  run.family = MegatronFamily::Hybrid;
  run.shared_prediction = row.has_option("mtp-use-repeated-layer");
  MambaSizes& mamba = run.mamba;
  mamba.head_channels = std::max(1, row.option_whole("mamba-head-dim", 64));
  mamba.groups = row.option_whole("mamba-num-groups", 8);
  mamba.states = row.option_whole("mamba-state-dim", 128);
  mamba.heads = row.option_whole("mamba-num-heads",
                                 2 * run.training.model.hidden / mamba.head_channels);
}

int state_width(const std::string& type) {
  if (type == "fp16" || type == "bf16")
    return 2;
  return type == "fp8" ? 1 : 4;
}

void read_precision(const Row& row, MegatronRun& run) {
  const std::string precision = row.text("precision");
  if (precision.find("fp4") != std::string::npos)
    refuse("precision", precision, "fp32, fp16, bf16 and fp8 are accounted for");
  run.precision = precision.find("fp8") != std::string::npos ? MegatronPrecision::Float8
                  : precision == "fp32"                      ? MegatronPrecision::Full
                                                             : MegatronPrecision::Half;
  run.float8_parameters = row.is_yes("fp8_param_gather");
  const std::string recipe = row.text("fp8_recipe");
  run.float8_one_copy =
      run.gpu == GpuKind::Blackwell && (recipe == "tensorwise" || recipe == "delayed");
  const std::string gradients = row.text("gradient_dtype");
  const bool halves = gradients == "fp16" || gradients == "bf16" ||
                      row.has_option("grad-reduce-in-bf16");
  run.gradient_bytes = halves ? 2 : 4;
  run.keeps_wide_gradients =
      row.has_option("use-precision-aware-optimizer") || row.has_option("main-params-dtype");
  run.main_weight_bytes = state_width(row.option("main-params-dtype"));
  run.state_bytes =
      state_width(row.option("exp-avg-dtype")) + state_width(row.option("exp-avg-sq-dtype"));
}

void read_kernels(const Row& row, MegatronRun& run) {
  using A = AttentionBackend;
  run.attention = meaning<A>(row, "attention_backend",
                             {{"", A::Auto},
                              {"auto", A::Auto},
                              {"flash", A::Flash},
                              {"fused", A::Fused},
                              {"unfused", A::Unfused},
                              {"local", A::Local}});
  run.transformer_engine = meaning<bool>(row, "transformer_impl",
                                         {{"", true},
                                          {"transformer_engine", true},
                                          {"inference_optimized", true},
                                          {"local", false}});
  run.loss_fusion = meaning<LossFusion>(row, "cross_entropy_fusion",
                                        {{"", LossFusion::None},
                                         {"no", LossFusion::None},
                                         {"native", LossFusion::Native},
                                         {"te", LossFusion::TransformerEngine}});
  run.bias = row.is_yes("bias");
  run.attention_dropout = row.real("attention_dropout", 0) > 0;
  run.wide_residual = row.is_yes("fp32_residual");
  run.fused_activation = !row.has_option("no-bias-swiglu-fusion");
  run.fused_weighted_activation = row.has_option("use-fused-weighted-squared-relu");
  run.fused_softmax = !row.has_option("no-masked-softmax-fusion");
  run.fused_weight_gradients = row.is_yes("gradient_accumulation_fusion");
  run.deferred_head_gradients = row.option_whole("wgrad-deferral-limit", 0);
  run.grouped_experts = row.is_yes("grouped_gemm");
  run.expert_capacity = row.option_real("moe-expert-capacity-factor");
  run.overlap_streams = row.has_option("tp-comm-overlap") ? 3 : 1;
}

void read_recomputation(const Row& row, MegatronRun& run) {
  const std::string mode = row.text("recompute");
  run.cut.recompute = mode.empty() ? RecomputeMode::None : recompute_mode(mode);
  for (const std::string& module : words_of(row.text("recompute_modules"), "[] ,;"))
    run.recompute_modules.insert(module);
  run.recompute_layers = std::max(1, row.whole("recompute_layers", 1));
  run.recompute_block = row.text("recompute_method") == "block";
}

/// ":4096:2:16:8": pairs of KiB and how many.
long long workspace_bytes(const std::string& config) {
  const auto words = words_of(config, ":");
  long long bytes = 0;
  for (std::size_t at = 0; at + 1 < words.size(); at += 2)
    bytes += 1024LL * std::atoi(words[at].c_str()) * std::atoi(words[at + 1].c_str());
  return bytes;
}

GpuKind gpu_kind(const std::string& gpu) {
  const auto begins = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return gpu.starts_with(name); });
  };
  if (begins({"A100", "A800", "A10", "A30"}))
    return GpuKind::Ampere;
  if (begins({"H100", "H200", "H800", "GH200"}))
    return GpuKind::Hopper;
  if (begins({"B200", "B300", "GB200", "GB300"}))
    return GpuKind::Blackwell;
  refuse("gpu", gpu, "A100, H100, H200, B200, GB200 and GB300 are accounted for");
}

/// "2025-08-17" as 20250817.
int software_date(const Row& row) {
  std::string digits;
  for (const char c : row.text("golden_date"))
    if (c >= '0' && c <= '9')
      digits += c;
  const int told = digits.size() == 8 ? std::atoi(digits.c_str()) : newest_software;
  const bool renamed = row.text("platform").starts_with(renamed_platform);
  return renamed ? std::min(told, renamed_before) : told;
}

void read_machine(const Row& row, MegatronRun& run) {
  run.gpu = gpu_kind(row.text("gpu"));
  run.date = software_date(row);
  run.deterministic = row.is_yes("deterministic");
  run.cublas_workspace = workspace_bytes(row.environment("CUBLAS_WORKSPACE_CONFIG"));
  run.expandable_segments = row.environment("PYTORCH_CUDA_ALLOC_CONF").find(
                                "expandable_segments:True") != std::string::npos;
  run.one_node = row.text("nodes") == "1";
  run.graphs = row.text("cuda_graph") == "transformer_engine";
  run.resumed = row.whole("run", 1) > 1;
  run.first_step_only = row.text("test_type") == "checkpoint-consistency";
}

}  // namespace

MegatronRun megatron_run_of(const std::map<std::string, std::string>& cells) {
  const Row row(cells);
  refuse_uncounted(row);
  MegatronRun run;
  run.family = family_of(row);
  read_cut(row, run);
  read_model(row, run);
  read_machine(row, run);
  read_pattern(row, run);
  read_precision(row, run);
  read_kernels(row, run);
  read_recomputation(row, run);
  run.decoder_sequence = row.option_whole("decoder-seq-length", run.training.sequence);
  return run;
}

bool is_megatron_table(std::string_view csv) {
  std::vector<std::string> faults;
  const auto lines = csv_lines(csv.substr(0, csv.find('\n')), "", faults);
  if (lines.empty())
    return false;
  const auto& cells = lines.front().cells;
  return std::any_of(cells.begin(), cells.end(),
                     [](const CsvCell& cell) { return cell.text == "mem_rank"; });
}

std::vector<MegatronRow> read_megatron_table(std::string_view csv, const std::string& name) {
  std::vector<std::string> faults;
  const auto lines = csv_lines(csv, name, faults);
  if (lines.empty())
    throw InputError(name + ": is empty: a header and a line for each run are needed");
  const auto& columns = lines.front().cells;
  std::vector<MegatronRow> rows;
  for (std::size_t at = 1; at < lines.size(); ++at) {
    const CsvLine& line = lines[at];
    if (line.cells.size() != columns.size()) {
      faults.push_back(fmt::format("{}:{}:1: {} cells, but the header has {}", name, line.line,
                                   line.cells.size(), columns.size()));
      continue;
    }
    MegatronRow row{.id = {}, .line = line.line, .cells = {}};
    for (std::size_t cell = 0; cell < columns.size(); ++cell)
      row.cells[columns[cell].text] = line.cells[cell].text;
    row.id = row.cells["id"];
    try {
      row.run = megatron_run_of(row.cells);
    } catch (const InputError& error) {
      row.refused = error.what();
    }
    rows.push_back(std::move(row));
  }
  if (!faults.empty())
    throw InputError(listed_lines(faults));
  return rows;
}

}  // namespace pipewright::plan
