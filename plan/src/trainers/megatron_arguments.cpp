#include "pipewright/plan/trainers/megatron_arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "model/layer_pattern.hpp"
#include "model/size_ranges.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/hugging_face.hpp"
#include "pipewright/plan/model/known_transformers.hpp"
#include "pipewright/plan/partitioners/layout.hpp"
#include "trainers/shell_words.hpp"

namespace pipewright::plan {
namespace {

constexpr int long_sequence = 4096;  // where a file says only what the longest is

struct Argument {
  ShellWord option;
  std::optional<ShellWord> value;
};

/// By name, the last of each; `--a=1` and a YAML file's `--a: 1` are as good as `--a 1`.
std::map<std::string, Argument> arguments_of(const std::vector<ShellWord>& words) {
  std::map<std::string, Argument> arguments;
  Argument* open = nullptr;
  for (const ShellWord& word : words) {
    if (!word.text.starts_with("--") || word.text.size() < 4) {
      if (open != nullptr)
        open->value = word;
      open = nullptr;
      continue;
    }
    const std::size_t end = std::min(word.text.find_first_of("=:"), word.text.size());
    Argument argument{.option = word, .value = {}};
    argument.option.text.resize(end);
    if (end + 1 < word.text.size()) {
      argument.value = word;
      argument.value->text.erase(0, end + 1);
      argument.value->column += static_cast<int>(end) + 1;
    }
    const bool is_whole = argument.value.has_value();
    open = &(arguments[argument.option.text] = std::move(argument));
    if (is_whole)
      open = nullptr;
  }
  return arguments;
}

class MegatronFields {
 public:
  MegatronFields(std::string_view text, std::string name)
      : name_(std::move(name)), arguments_(arguments_of(shell_words(text))) {}

  bool has(const std::string& option) {
    asked_.push_back(option);
    return arguments_.contains(option);
  }

  void size(int& member, const std::string& option, double most = most_channels) {
    if (has(option))
      member = integer(&member, option, 1, most);
    else
      member = 1, missing_.push_back(option);
  }
  void size_or(int& member, const std::string& option, int fallback, double least = 1,
               double most = most_channels) {
    member = has(option) ? integer(&member, option, least, most) : fallback;
  }
  bool is_positive_or(const std::string& option, bool fallback) {
    if (!has(option))
      return fallback;
    const std::string& value = word_of(option).text;
    double number = 0;
    const auto end = std::from_chars(value.data(), value.data() + value.size(), number);
    if (end.ec == std::errc() && end.ptr == value.data() + value.size() && number >= 0)
      return number > 0;
    refuse(option, fmt::format("a number is needed here, not \"{}\"", value));
    return fallback;
  }
  /// One of several words; the first unless given.
  std::string choice(const std::string& option, const std::vector<std::string>& words) {
    if (!has(option))
      return words.front();
    const std::string& value = word_of(option).text;
    if (std::find(words.begin(), words.end(), value) == words.end())
      refuse(option, fmt::format("\"{}\" is not known here{} (possible: {})", value,
                                 did_you_mean(value, words), listed(words)));
    return value;
  }
  std::optional<std::string> text(const std::string& option) {
    if (!has(option))
      return {};
    return word_of(option).text;
  }

  void refuse(const std::string& option, const std::string& message) {
    const auto found = arguments_.find(option);
    const ShellWord none{};
    const ShellWord& at = found == arguments_.end()         ? none
                          : found->second.value.has_value() ? *found->second.value
                                                            : found->second.option;
    faults_.push_back(fmt::format("{}:{}:{}: {}: {}", name_, at.line, at.column, option, message));
  }

  void tell_missing() {
    std::vector<std::string> others;
    for (const auto& [option, argument] : arguments_)
      if (std::find(asked_.begin(), asked_.end(), option) == asked_.end())
        others.push_back(option);
    for (const std::string& option : missing_) {
      const std::string* near = nearest_to(option, others);
      refuse(near == nullptr ? option : *near,
             near == nullptr ? "is missing"
                             : fmt::format("\"{}\" is missing; this is the nearest to it", option));
    }
  }

  void fault(const int* member, const std::string& message) {
    const auto option = option_of_.find(member);
    refuse(option == option_of_.end() ? std::string("--hidden-size") : option->second, message);
  }
  /// So far.
  bool are_sound() const { return missing_.empty() && faults_.empty(); }
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  /// An empty word, of an option that was given nothing.
  const ShellWord& word_of(const std::string& option) {
    Argument& argument = arguments_.at(option);
    if (!argument.value) {
      argument.value = argument.option;
      argument.value->text.clear();
    }
    return *argument.value;
  }

  int integer(const int* member, const std::string& option, double least, double most) {
    option_of_[member] = option;
    const std::string& value = word_of(option).text;
    long long number = 0;
    const auto end = std::from_chars(value.data(), value.data() + value.size(), number);
    const auto is_number = end.ptr == value.data() + value.size() && !value.empty();
    if (is_number && end.ec == std::errc() && static_cast<double>(number) >= least &&
        static_cast<double>(number) <= most)
      return static_cast<int>(number);
    if (value.starts_with('$'))
      refuse(option, fmt::format("{} is not set in this file", value));
    else if (is_number)
      refuse(option, fmt::format("{} is not possible: it must be at least {:.15g} and at most "
                                 "{:.15g}",
                                 value, least, most));
    else
      refuse(option, fmt::format("a whole number is needed here, not \"{}\"", value));
    return std::max(1, static_cast<int>(least));
  }

  std::string name_;
  std::map<std::string, Argument> arguments_;
  std::map<const int*, std::string> option_of_;
  std::vector<std::string> missing_, asked_, faults_;
};

void read_attention(MegatronFields& fields, TransformerConfig& config) {
  config.head_channels = std::max(1, config.hidden / config.heads);
  if (!fields.has("--kv-channels") && fields.are_sound() && config.hidden % config.heads != 0)
    fields.fault(&config.heads, fmt::format("{} channels do not divide among {} heads, and "
                                            "--kv-channels is missing",
                                            config.hidden, config.heads));
  fields.size_or(config.head_channels, "--kv-channels", config.head_channels);
  config.value_channels = config.head_channels;
  config.kv_heads = config.heads;
  if (fields.has("--group-query-attention"))
    fields.size_or(config.kv_heads, "--num-query-groups", 1);
  const bool norms = fields.has("--qk-layernorm");
  const bool bias = !fields.has("--disable-bias-linear");
  config.query_bias = bias || fields.has("--add-qkv-bias");
  config.projection_bias = config.feed_forward_bias = bias;
  if (!fields.has("--multi-latent-attention")) {
    config.head_norms = norms;
    return;
  }
  config.latent_norms = norms;
  config.query_bias = false;
  config.kv_heads = config.heads;
  fields.size_or(config.q_rank, "--q-lora-rank", 0);
  fields.size_or(config.kv_rank, "--kv-lora-rank", 32);
  fields.size_or(config.head_channels, "--qk-head-dim", 128);
  fields.size_or(config.rope_channels, "--qk-pos-emb-head-dim", 64);
  fields.size_or(config.value_channels, "--v-head-dim", 128);
}

void read_feed_forward(MegatronFields& fields, TransformerConfig& config) {
  config.gated = fields.has("--swiglu");
  // Two thirds of four times the width, rounded down to 64, so that it has as many parameters.
  const int gated_width = std::max(64, static_cast<int>(4LL * config.hidden * 2 / 3 / 64 * 64));
  fields.size_or(config.feed_forward, "--ffn-hidden-size",
                 config.gated ? gated_width : 4 * config.hidden, 1, 4 * most_channels);
  fields.size_or(config.experts, "--num-experts", 0);
  if (config.experts == 0)
    return;
  fields.size_or(config.experts_per_token, "--moe-router-topk", 2);
  fields.size_or(config.expert_feed_forward, "--moe-ffn-hidden-size", config.feed_forward, 1,
                 4 * most_channels);
  fields.size_or(config.shared_feed_forward, "--moe-shared-expert-intermediate-size", 0);
  config.router_bias = fields.has("--moe-router-enable-expert-bias");
  const std::string pattern = fields.text("--moe-layer-freq").value_or("1");
  try {
    config.sparse = layer_pattern(pattern, config.layers);
  } catch (const InputError& error) {
    fields.refuse("--moe-layer-freq", error.what());
  }
}

void read_ends(MegatronFields& fields, TransformerConfig& config) {
  fields.size(config.vocabulary, "--vocab-size");
  fields.size_or(config.vocabulary_multiple, "--make-vocab-size-divisible-by", 128);
  const std::string positions =
      fields.choice("--position-embedding-type",
                    {"learned_absolute", "rope", "yarn", "mrope", "relative", "none"});
  config.learned_positions = positions == "learned_absolute" &&
                             !fields.has("--use-rotary-position-embeddings") &&
                             !fields.has("--no-position-embedding");
  config.tied = !fields.has("--untie-embeddings-and-output-weights");
  const std::string norm = fields.choice("--normalization", {"LayerNorm", "RMSNorm"});
  config.norm = norm == "RMSNorm" ? NormKind::Root : NormKind::Layer;
  config.dropout = fields.is_positive_or("--hidden-dropout", true);
  fields.size_or(config.predictions, "--mtp-num-layers", 0, 0, 100);
}

void read_cut(MegatronFields& fields, DescribedTransformer& transformer) {
  Cut& cut = transformer.cut;
  fields.size_or(cut.tensor, "--tensor-model-parallel-size", 1);
  cut.sequence_parallel = fields.has("--sequence-parallel") && cut.tensor > 1;
  fields.size_or(cut.expert, "--expert-model-parallel-size", 1);
  fields.size_or(cut.context, "--context-parallel-size", 1);
  fields.size_or(cut.microbatch, "--micro-batch-size", 1);
  // Of `auto` and others Megatron takes a fused kernel where there is one.
  const std::string backend =
      fields.choice("--attention-backend", {"auto", "flash", "fused", "unfused", "local"});
  if (backend == "unfused" || backend == "local")
    transformer.training.attention = AttentionKind::Scores;
  const std::string recompute =
      fields.choice("--recompute-granularity", {"none", "full", "selective"});
  if (recompute == "full")
    cut.recompute = RecomputeMode::Full;
  else if (recompute == "selective" || fields.has("--recompute-activations"))
    cut.recompute = RecomputeMode::Selective;
}

/// The layers of each stage, where the last one has the loss and the first one the embedding.
void read_layout(MegatronFields& fields, const std::string& text, int layers, Cut& cut) {
  const std::string option = "--pipeline-model-parallel-layout";
  try {
    const Layout layout = parse_layout(text);
    for (const std::string& stage : layout.stages)
      cut.stage_layers.push_back(static_cast<int>(std::ranges::count(stage, 't')));
  } catch (const InputError& error) {
    return fields.refuse(option, error.what());
  }
  const int stages = static_cast<int>(cut.stage_layers.size());
  const int found = std::accumulate(cut.stage_layers.begin(), cut.stage_layers.end(), 0);
  if (stages % cut.pipeline != 0)
    fields.refuse(option,
                  fmt::format("{} stages do not divide among {} ranks", stages, cut.pipeline));
  else if (found != layers)
    fields.refuse(option, fmt::format("it has {} layers, but --num-layers says {}", found, layers));
  cut.chunks = std::max(1, stages / cut.pipeline);
}

void read_stages(MegatronFields& fields, int layers, Cut& cut) {
  fields.size_or(cut.pipeline, "--pipeline-model-parallel-size", 1);
  if (fields.has("--use-distributed-optimizer"))
    cut.zero = 1;
  if (const auto layout = fields.text("--pipeline-model-parallel-layout"))
    return read_layout(fields, *layout, layers, cut);
  fields.size_or(cut.chunks, "--num-virtual-stages-per-pipeline-rank", 1);
  int of_stage = 0;
  fields.size_or(of_stage, "--num-layers-per-virtual-pipeline-stage", 0);
  if (of_stage > 0 && layers % (cut.pipeline * of_stage) != 0)
    fields.refuse("--num-layers-per-virtual-pipeline-stage",
                  fmt::format("{} layers are no multiple of {} on each of {} ranks", layers,
                              of_stage, cut.pipeline));
  else if (of_stage > 0)
    cut.chunks = layers / cut.pipeline / of_stage;
}

}  // namespace

DescribedTransformer transformer_from_megatron(std::string_view text, const std::string& name) {
  MegatronFields fields(text, name);
  DescribedTransformer transformer;
  TransformerConfig& config = transformer.training.model;
  config.name = std::filesystem::path(name).stem().string();
  fields.size(config.layers, "--num-layers", most_layers);
  fields.size(config.hidden, "--hidden-size");
  fields.size(config.heads, "--num-attention-heads");
  read_attention(fields, config);
  read_feed_forward(fields, config);
  read_ends(fields, config);
  fields.size(transformer.training.sequence, "--seq-length", most_tokens);
  fields.size_or(config.longest, "--max-position-embeddings", transformer.training.sequence, 1,
                 most_tokens);
  read_cut(fields, transformer);
  read_stages(fields, config.layers, transformer.cut);
  fields.size_or(transformer.training.batch, "--global-batch-size", 1);
  fields.tell_missing();
  if (fields.faults().empty())
    for (const ConfigFault& fault : faults_of(config))
      fields.fault(fault.member, fault.message);
  if (!fields.faults().empty())
    throw InputError(listed_lines(fields.faults()));
  return transformer;
}

DescribedTransformer read_transformer(const std::string& file) {
  std::string text = read_file(file);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || text[begin] != '{')
    return transformer_from_megatron(text, file);
  DescribedTransformer transformer;
  transformer.training.model = transformer_from_config(JsonDocument::parse(std::move(text), file));
  const int longest = transformer.training.model.longest;
  transformer.training.sequence = longest > 0 ? std::min(longest, long_sequence) : long_sequence;
  return transformer;
}

TransformerConfig transformer_named(const std::string& name) {
  if (const auto known = find_transformer(name))
    return *known;
  const std::vector<std::string> known = known_transformers();
  if (!std::filesystem::exists(name))
    throw InputError(
        fmt::format("no model \"{}\" is known, and no file has that name{}; known are: {}", name,
                    did_you_mean(name, known), fmt::join(known, ", ")));
  return read_transformer(name).training.model;
}

}  // namespace pipewright::plan
