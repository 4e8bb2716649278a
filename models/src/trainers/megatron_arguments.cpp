#include "pipewright/models/trainers/megatron_arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "measured/run_row.hpp"
#include "pipewright/models/measured/megatron_words.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/hugging_face.hpp"
#include "pipewright/plan/model/known_transformers.hpp"
#include "pipewright/plan/model/layer_pattern.hpp"
#include "pipewright/plan/model/size_ranges.hpp"
#include "pipewright/plan/partitioners/layout.hpp"
#include "trainers/megatron_fields.hpp"
#include "trainers/megatron_options.hpp"
#include "trainers/tokenizers.hpp"

namespace pipewright::models {
namespace {

constexpr int long_sequence = 4096;  // if a file gives only the maximum length

void read_attention(MegatronFields& fields, plan::TransformerConfig& config) {
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
  config.query_bias = fields.has("--add-qkv-bias") || bias;
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

/// Returns YaRN's factor of magnitudes (arXiv 2309.00071).
double yarn_magnitude(double factor, double times) {
  return factor <= 1 ? 1 : 0.1 * times * std::log(factor) + 1;
}

void read_yarn(MegatronFields& fields, plan::TransformerConfig& config) {
  plan::Rotary& rotary = config.rotary;
  rotary.factor = fields.number_or("--rotary-scaling-factor", 1);
  const double times = fields.number_or("--mscale", 1),
               of_all = fields.number_or("--mscale-all-dim", 0);
  fields.size_or(rotary.longest, "--yarn-original-max-position-embeddings", 4096, 1,
                 plan::most_tokens);
  rotary.fast = fields.number_or("--yarn-beta-fast", 32);
  rotary.slow = fields.number_or("--yarn-beta-slow", 1);
  if (rotary.factor <= 1) {
    rotary = {.base = rotary.base, .share = rotary.share, .neighbors = rotary.neighbors};
    return;
  }
  rotary.scaling = plan::RotaryScaling::Yarn;
  const double once = yarn_magnitude(rotary.factor, of_all);
  rotary.magnitude = yarn_magnitude(rotary.factor, times) / once;
  if (config.is_latent() && of_all > 0)
    config.score_scale = once * once / std::sqrt(1.0 * config.head_channels + config.rope_channels);
}

void read_rotary(MegatronFields& fields, plan::TransformerConfig& config) {
  plan::Rotary& rotary = config.rotary;
  rotary.base = fields.number_or("--rotary-base", 10'000);
  rotary.share = fields.number_or("--rotary-percent", 1);
  if (rotary.base <= 0)
    fields.refuse("--rotary-base", "a number above 0 is needed");
  if (rotary.share <= 0 || rotary.share > 1)
    fields.refuse("--rotary-percent", "a number above 0 and at most 1 is needed");
  // Latent attention always rotates pairs of adjacent channels.
  rotary.neighbors = fields.has("--rotary-interleaved") || config.is_latent();
  const std::string type = fields.choice("--rope-type", {"yarn", "rope"});
  const bool is_yarn = config.is_latent()
                           ? type != "rope"
                           : fields.text("--position-embedding-type").value_or("") == "yarn";
  if (is_yarn)
    return read_yarn(fields, config);
  const char* factor = "--rope-scaling-factor";
  if (fields.has("--use-rope-scaling")) {
    constexpr int longest_of_llama = 8192;
    rotary.scaling = plan::RotaryScaling::Llama3;
    rotary.factor = fields.number_or(factor, 8);
    rotary.longest = longest_of_llama;
  } else if (fields.has("--rotary-seq-len-interpolation-factor")) {
    factor = "--rotary-seq-len-interpolation-factor";
    rotary.scaling = plan::RotaryScaling::Linear;
    rotary.factor = fields.number_or(factor, 1);
  }
  if (rotary.factor <= 0)
    fields.refuse(factor, "a number above 0 is needed");
}

/// Returns the number of tokens before a query's own that "(127,0)" says; nothing if it does not.
std::optional<int> tokens_before(std::string text) {
  std::erase_if(text,
                [](char c) { return std::string_view("()[] ").find(c) != std::string::npos; });
  text.resize(std::min(text.find(','), text.size()));
  int tokens = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), tokens);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || tokens < 0 ||
      tokens >= plan::most_tokens)
    return {};
  return tokens;
}

/// Reads the attention window, and which layers have it: all but every Nth one, or those with a 1
/// in a list.
void read_window(MegatronFields& fields, plan::TransformerConfig& config) {
  const auto text = fields.text("--window-size");
  if (!text)
    return;
  const auto before = tokens_before(*text);
  if (!before)
    return fields.refuse(
        "--window-size",
        fmt::format("a pair of tokens such as (127,0) is needed, not \"{}\"", *text));
  config.window = *before + 1;
  const auto layers = fields.text("--window-attn-skip-freq");
  if (!layers)
    return;
  if (layers->find('[') == std::string::npos) {
    int skipped = 0;
    fields.size_or(skipped, "--window-attn-skip-freq", 0, 1, plan::most_layers);
    for (int layer = 1; layer <= config.layers; ++layer)
      config.windowed.push_back(layer % std::max(1, skipped) != 0);
    return;
  }
  try {
    config.windowed = plan::layer_pattern(*layers, config.layers);
  } catch (const plan::InputError& error) {
    fields.refuse("--window-attn-skip-freq", error.what());
  }
}

void read_router(MegatronFields& fields, plan::TransformerConfig& config) {
  config.router_bias = fields.has("--moe-router-enable-expert-bias");
  const bool is_sigmoid =
      fields.choice("--moe-router-score-function", {"softmax", "sigmoid"}) == "sigmoid";
  if (is_sigmoid)
    config.router_scores = plan::RouterScores::Sigmoid;
  else if (config.router_bias)
    fields.refuse("--moe-router-enable-expert-bias",
                  "Megatron-LM supports it only with --moe-router-score-function sigmoid");
  // With biases, Megatron's router has one as well.
  config.router_bias = config.router_bias || (!is_sigmoid && config.feed_forward_bias);
  // The softmax before the choice is not normalized again, nor is the weight of a single expert.
  config.weights_sum_to_one =
      config.experts_per_token > 1 && (is_sigmoid || !fields.has("--moe-router-pre-softmax"));
  config.routed_scale = fields.number_or("--moe-router-topk-scaling-factor", 1);
  if (config.routed_scale <= 0)
    fields.refuse("--moe-router-topk-scaling-factor", "a number above 0 is needed");
  if (!fields.has("--moe-router-group-topk"))
    return;  // Megatron then ignores the groups
  fields.size_or(config.router_groups, "--moe-router-num-groups", 1);
  fields.size_or(config.groups_per_token, "--moe-router-group-topk", 1);
}

void read_activation(MegatronFields& fields, plan::TransformerConfig& config) {
  const bool is_quick = fields.has("--quick-geglu");
  config.gated = fields.has("--swiglu") || is_quick;
  if (is_quick && fields.has("--swiglu"))
    fields.refuse("--quick-geglu", "cannot be combined with --swiglu");
  // Megatron's fused kernel for a bias and GELU has the tanh approximation.
  const bool is_fused = config.feed_forward_bias && !fields.has("--no-bias-gelu-fusion");
  if (!config.gated && is_fused)
    config.activation = plan::Activation::Tanh;
}

void read_feed_forward(MegatronFields& fields, plan::TransformerConfig& config) {
  read_activation(fields, config);
  // Two thirds of four times the width, rounded down to 64, for the same number of parameters.
  const int gated_width = std::max(64, static_cast<int>(4LL * config.hidden * 2 / 3 / 64 * 64));
  fields.size_or(config.feed_forward, "--ffn-hidden-size",
                 fields.has("--swiglu") ? gated_width : 4 * config.hidden, 1,
                 4 * plan::most_channels);
  fields.size_or(config.experts, "--num-experts", 0);
  if (config.experts == 0)
    return;
  fields.size_or(config.experts_per_token, "--moe-router-topk", 2);
  fields.size_or(config.expert_feed_forward, "--moe-ffn-hidden-size", config.feed_forward, 1,
                 4 * plan::most_channels);
  fields.size_or(config.shared_feed_forward, "--moe-shared-expert-intermediate-size", 0);
  read_router(fields, config);
  const std::string pattern = fields.text("--moe-layer-freq").value_or("1");
  try {
    config.sparse = plan::layer_pattern(pattern, config.layers);
  } catch (const plan::InputError& error) {
    fields.refuse("--moe-layer-freq", error.what());
  }
}

constexpr int cased_vocabulary = 28996;  // of BERT's word pieces
constexpr int uncased_vocabulary = 30522;
constexpr int gpt2_vocabulary = 50257;

/// Returns the vocabulary of the named tokenizer, or of the default one.
std::optional<KnownVocabulary> tokenizer_vocabulary(MegatronFields& fields,
                                                    const std::string& family) {
  const TokenizerWords words{.type = fields.text("--tokenizer-type").value_or(""),
                             .model = fields.text("--tokenizer-model").value_or(""),
                             .file = fields.text("--vocab-file").value_or("")};
  int more = 0;
  fields.size_or(more, "--vocab-extra-ids", 0, 0);
  auto known = known_vocabulary(words);
  if (!known && words.type.empty() && family == "bert")
    known = {cased_vocabulary, "BERT's cased word pieces"};
  else if (!known && words.type.empty() && family == "t5")
    known = {uncased_vocabulary, "BertWordPieceLowerCase, the default tokenizer,"};
  else if (!known && words.type.empty())
    known = {gpt2_vocabulary, "GPT2BPETokenizer, the default tokenizer,"};
  if (known && (words.type.starts_with("BertWordPiece") || family == "t5"))
    known->size += more;
  return known;
}

/// Reads --padded-vocab-size or --vocab-size, or uses the vocabulary of the tokenizer.
void read_vocabulary(MegatronFields& fields, DescribedTransformer& told) {
  plan::TransformerConfig& config = told.training.model;
  fields.size_or(config.vocabulary_multiple, "--make-vocab-size-divisible-by", 128);
  if (fields.has("--padded-vocab-size")) {
    config.vocabulary_multiple = 1;
    return fields.size(config.vocabulary, "--padded-vocab-size");
  }
  if (fields.has("--vocab-size")) {
    fields.size(config.vocabulary, "--vocab-size");
    // It adds an end-of-document token.
    config.vocabulary += fields.text("--tokenizer-type").value_or("") == "NullTokenizer";
    return;
  }
  const auto known = tokenizer_vocabulary(fields, told.options.family);
  config.vocabulary = known ? known->size : 1;
  if (known)
    told.assumed.push_back(fmt::format("--vocab-size {}, as {} has it", known->size, known->whose));
  else
    fields.refuse("--tokenizer-type",
                  fmt::format("the vocabulary size of {} is unknown: set --vocab-size",
                              fields.text("--tokenizer-type").value_or("")));
}

void read_ends(MegatronFields& fields, plan::TransformerConfig& config) {
  const std::string positions =
      fields.choice("--position-embedding-type",
                    {"learned_absolute", "rope", "yarn", "mrope", "relative", "none"});
  config.learned_positions = positions == "learned_absolute" &&
                             !fields.has("--use-rotary-position-embeddings") &&
                             !fields.has("--no-position-embedding");
  config.tied = !fields.has("--untie-embeddings-and-output-weights");
  const std::string norm = fields.choice("--normalization", {"LayerNorm", "RMSNorm"});
  config.norm = norm == "RMSNorm" ? plan::NormKind::Root : plan::NormKind::Layer;
  config.norm_epsilon = fields.number_or("--norm-epsilon", 1e-5);
  config.norm_plus_one = fields.has("--apply-layernorm-1p");
  config.dropout = fields.number_or("--hidden-dropout", 0.1) > 0;
  fields.size_or(config.predictions, "--mtp-num-layers", 0, 0, 100);
}

/// Names positions that a transformer here has only as rotary ones.
void read_positions(MegatronFields& fields, DescribedTransformer& told) {
  const std::string& kind = told.options.position;
  if (kind == "none" || kind == "mrope" || kind == "relative")
    told.uncounted.push_back(
        {fields.has("--position-embedding-type") ? "--position-embedding-type"
                                                 : "--no-position-embedding",
         fmt::format("is {}: written scenarios have rotary positions instead", kind), true});
}

void read_cut(MegatronFields& fields, DescribedTransformer& transformer) {
  plan::Cut& cut = transformer.cut;
  fields.size_or(cut.tensor, "--tensor-model-parallel-size", 1);
  cut.sequence_parallel = fields.has("--sequence-parallel") && cut.tensor > 1;
  fields.size_or(cut.expert, "--expert-model-parallel-size", 1);
  fields.size_or(cut.expert_tensor, "--expert-tensor-parallel-size", 0);
  cut.overlaps_gradients = fields.has("--overlap-grad-reduce");
  cut.overlaps_parameters = fields.has("--overlap-param-gather");
  cut.overlaps_sums = fields.has("--tp-comm-overlap");
  cut.copies_last = fields.has("--use-tp-pp-dp-mapping");
  cut.holds_both_ends = fields.has("--no-overlap-p2p-communication");
  fields.size_or(cut.context, "--context-parallel-size", 1);
  fields.size_or(cut.microbatch, "--micro-batch-size", 1);
  // With `auto` and other values, Megatron uses a fused kernel if there is one.
  const std::string backend =
      fields.choice("--attention-backend", {"auto", "flash", "fused", "unfused", "local"});
  if (backend == "unfused" || backend == "local")
    transformer.training.attention = plan::AttentionKind::Scores;
  const std::string recompute =
      fields.choice("--recompute-granularity", {"none", "full", "selective"});
  if (recompute == "full")
    cut.recompute = plan::RecomputeMode::Full;
  else if (recompute == "selective" || fields.has("--recompute-activations"))
    cut.recompute = plan::RecomputeMode::Selective;
}

/// Returns Megatron's option for a column of a table.
std::string option_of(const std::string& column) {
  if (column == "pipeline_layout")
    return "--pipeline-model-parallel-layout";
  if (column == "first_stage_layers")
    return "--decoder-first-pipeline-num-layers";
  if (column == "last_stage_layers")
    return "--decoder-last-pipeline-num-layers";
  if (column == "embedding_counts_as_layer")
    return "--account-for-embedding-in-pipeline-split";
  if (column == "loss_counts_as_layer")
    return "--account-for-loss-in-pipeline-split";
  return "--num-virtual-stages-per-pipeline-rank";
}

/// Reads the number of stages per rank, given directly or by the layers of each.
void read_chunks(MegatronFields& fields, int layers, plan::Cut& cut) {
  fields.size_or(cut.chunks, "--num-virtual-stages-per-pipeline-rank", 1);
  int of_stage = 0;
  fields.size_or(of_stage, "--num-layers-per-virtual-pipeline-stage", 0);
  if (of_stage == 0)
    return;
  if (layers % (cut.pipeline * of_stage) != 0)
    return fields.refuse("--num-layers-per-virtual-pipeline-stage",
                         fmt::format("{} layers are not a multiple of {} on each of {} ranks",
                                     layers, of_stage, cut.pipeline));
  cut.chunks = layers / cut.pipeline / of_stage;
}

/// Reads the layers of a hybrid and, where the pattern has pipes, its stages.
void read_pattern(MegatronFields& fields, const std::string& pattern, DescribedTransformer& told) {
  const char* const option = fields.has("--hybrid-layer-pattern")      ? "--hybrid-layer-pattern"
                             : fields.has("--hybrid-override-pattern") ? "--hybrid-override-pattern"
                                                                       : "--hybrid-attention-ratio";
  if (pattern.empty() || pattern.starts_with('$'))
    fields.refuse(option, pattern.empty() ? "a pattern such as M-M* is needed"
                                          : fmt::format("{} is not set in this file", pattern));
  MeasuredRun run;
  run.training = told.training;
  run.cut = told.cut;
  run.options = told.options;
  try {
    set_layers_by_pattern(run);
  } catch (const plan::InputError& error) {
    fields.refuse(option, error.what());
  }
  told.training.model.layers =
      std::clamp(run.training.model.layers, 1, static_cast<int>(plan::most_layers));
  told.cut = run.cut;
}

/// Reads the number of layers, or takes it from a hybrid's pattern, which has precedence.
void read_layers(MegatronFields& fields, DescribedTransformer& told) {
  plan::TransformerConfig& config = told.training.model;
  const bool has_pattern =
      fields.has("--hybrid-layer-pattern") || fields.has("--hybrid-override-pattern");
  if (fields.has("--num-layers") || !has_pattern)
    fields.size(config.layers,
                fields.has("--encoder-num-layers") ? "--encoder-num-layers" : "--num-layers",
                plan::most_layers);
  int decoder_layers = 0;
  fields.size_or(decoder_layers, "--decoder-num-layers", config.layers);
  if (decoder_layers != config.layers)
    fields.refuse("--decoder-num-layers",
                  "an encoder and a decoder with different numbers of layers are not supported");
  fields.size_or(told.cut.pipeline, "--pipeline-model-parallel-size", 1);
  const std::string pattern = hybrid_pattern(told.options.arguments, config.layers);
  if (!pattern.empty() || has_pattern)
    read_pattern(fields, pattern, told);
  else if (told.options.family == "hybrid")
    fields.missing("--hybrid-layer-pattern");
}

/// Refuses options that Megatron-LM rejects together with a hybrid's pattern.
void check_pattern_stages(MegatronFields& fields, bool has_pipes) {
  std::vector<std::string> excluded{
      "--num-layers-per-virtual-pipeline-stage", "--num-virtual-stages-per-pipeline-rank",
      "--pipeline-model-parallel-layout", "--account-for-embedding-in-pipeline-split",
      "--account-for-loss-in-pipeline-split"};
  if (has_pipes)
    excluded.insert(excluded.end(),
                    {"--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers"});
  for (const std::string& option : excluded)
    if (fields.has(option))
      fields.refuse(option,
                    "cannot be combined with --hybrid-layer-pattern, whose | gives the "
                    "stages");
}

/// Refuses a layout whose predictions are not those of --mtp-num-layers, as Megatron-LM does.
void check_predictions(MegatronFields& fields, const std::string& text, int predictions) {
  std::ptrdiff_t found = 0;
  for (const std::string& stage : plan::parse_layout(text).stages)
    found += std::ranges::count(stage, 'm');
  if (found != predictions)
    fields.refuse("--pipeline-model-parallel-layout",
                  fmt::format("has {} prediction layers (m), but --mtp-num-layers is {}", found,
                              predictions));
}

void read_stages(MegatronFields& fields, const plan::TransformerConfig& config, plan::Cut& cut,
                 bool has_pattern) {
  if (fields.has("--use-distributed-optimizer"))
    cut.zero = 1;
  fields.size_or(cut.group, "--microbatch-group-size-per-virtual-pipeline-stage", 0);
  const bool has_pipes = !cut.stage_layers.empty();
  if (has_pattern)
    check_pattern_stages(fields, has_pipes);
  if (has_pipes || !fields.are_sound())
    return;
  StageWords words;
  words.layout = fields.text("--pipeline-model-parallel-layout").value_or("");
  fields.size_or(words.first, "--decoder-first-pipeline-num-layers", 0);
  fields.size_or(words.last, "--decoder-last-pipeline-num-layers", 0);
  words.embedding_counts = fields.has("--account-for-embedding-in-pipeline-split");
  words.loss_counts = fields.has("--account-for-loss-in-pipeline-split");
  if (words.layout.empty())
    read_chunks(fields, config.layers + words.embedding_counts + words.loss_counts, cut);
  if (!fields.are_sound())
    return;
  if (const auto wrong = cut_by_words(words, config.layers, cut))
    fields.refuse(option_of(wrong->column), wrong->message);
  else if (!words.layout.empty())
    check_predictions(fields, words.layout, config.predictions);
}

/// Reads the length of a sample, for which `sequence` may stand.
void read_sequence(MegatronFields& fields, std::optional<int> sequence,
                   plan::TransformerTraining& training) {
  const bool is_encoder = fields.has("--encoder-seq-length") && !fields.has("--seq-length");
  if (!is_encoder && !fields.has("--seq-length") && sequence)
    training.sequence = *sequence;
  else
    fields.size(training.sequence, is_encoder ? "--encoder-seq-length" : "--seq-length",
                plan::most_tokens);
  fields.size_or(training.model.longest, "--max-position-embeddings", training.sequence, 1,
                 plan::most_tokens);
}

}  // namespace

DescribedTransformer transformer_from_megatron(std::string_view text, const std::string& name,
                                               std::optional<int> sequence) {
  MegatronFields fields(text, name);
  DescribedTransformer transformer;
  plan::TransformerConfig& config = transformer.training.model;
  config.name = std::filesystem::path(name).stem().string();
  transformer.options = megatron_options(fields, text);
  read_layers(fields, transformer);
  fields.size(config.hidden, "--hidden-size");
  fields.size(config.heads, "--num-attention-heads");
  read_attention(fields, config);
  read_window(fields, config);
  read_feed_forward(fields, config);
  read_vocabulary(fields, transformer);
  read_ends(fields, config);
  read_positions(fields, transformer);
  read_rotary(fields, config);
  read_sequence(fields, sequence, transformer.training);
  read_cut(fields, transformer);
  read_stages(fields, config, transformer.cut, transformer.options.family == "hybrid");
  transformer.tells_batch = fields.has("--global-batch-size");
  fields.size_or(transformer.training.batch, "--global-batch-size", transformer.cut.microbatch);
  check_options(fields, transformer.uncounted);
  fields.tell_missing();
  if (fields.faults().empty())
    for (const plan::ConfigFault& fault : faults_of(config))
      fields.fault(fault.member, fault.message);
  if (!fields.faults().empty())
    throw plan::InputError(plan::listed_lines(fields.faults()));
  return transformer;
}

DescribedTransformer read_transformer(const std::string& file, std::optional<int> sequence) {
  std::string text = plan::read_file(file);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || text[begin] != '{')
    return transformer_from_megatron(text, file, sequence);
  DescribedTransformer transformer;
  transformer.training.model =
      transformer_from_config(plan::JsonDocument::parse(std::move(text), file));
  const int longest = transformer.training.model.longest;
  transformer.training.sequence =
      sequence.value_or(longest > 0 ? std::min(longest, long_sequence) : long_sequence);
  return transformer;
}

DescribedTransformer read_decoder(const std::string& file, std::optional<int> sequence) {
  DescribedTransformer transformer = read_transformer(file, sequence);
  const TrainerOptions& options = transformer.options;
  if (options.family == "hybrid")
    throw plan::InputError(fmt::format(
        "{}: --hybrid-layer-pattern {}: a hybrid's layers are counted only by plan --as-is, which "
        "predicts the memory of its run",
        file, hybrid_pattern(options.arguments, transformer.training.model.layers)));
  if (options.family == "t5")
    throw plan::InputError(fmt::format(
        "{}: these are an encoder's and a decoder's arguments (T5): their layers are counted only "
        "by plan --as-is, which predicts the memory of its run",
        file));
  if (options.family == "bert")
    transformer.assumed.push_back("a decoder's head, without the additional layers of BERT's");
  return transformer;
}

DescribedTransformer transformer_named(const std::string& name, std::optional<int> sequence) {
  DescribedTransformer transformer;
  if (auto known = plan::find_transformer(name)) {
    transformer.training.model = *std::move(known);
  } else if (std::filesystem::exists(name)) {
    transformer = read_decoder(name, sequence);
    if (const std::string& optimizer = transformer.options.optimizer;
        !optimizer.empty() && optimizer != "adam")
      throw plan::InputError(
          fmt::format("{}: --optimizer {}: plans are timed with adam only, and another optimizer "
                      "has other states and another step. Set it to adam to plan for that",
                      name, optimizer));
  } else {
    const std::vector<std::string> all = plan::known_transformers();
    throw plan::InputError(
        fmt::format("\"{}\" is neither a known model nor a file{}; known models: {}", name,
                    plan::did_you_mean(name, all), fmt::join(all, ", ")));
  }
  const bool is_script = !transformer.options.implementation.empty();
  if (!is_script || sequence)
    transformer.training.sequence =
        sequence.value_or(plan::usual_sequence(transformer.training.model));
  return transformer;
}

}  // namespace pipewright::models
