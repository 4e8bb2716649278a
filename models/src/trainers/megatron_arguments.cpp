#include "pipewright/models/trainers/megatron_arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
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
#include "trainers/megatron_variants.hpp"
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

void read_feed_forward(MegatronFields& fields, plan::TransformerConfig& config) {
  config.gated = fields.has("--swiglu");
  // Two thirds of four times the width, rounded down to 64, for the same number of parameters.
  const int gated_width = std::max(64, static_cast<int>(4LL * config.hidden * 2 / 3 / 64 * 64));
  fields.size_or(config.feed_forward, "--ffn-hidden-size",
                 config.gated ? gated_width : 4 * config.hidden, 1, 4 * plan::most_channels);
  fields.size_or(config.experts, "--num-experts", 0);
  if (config.experts == 0)
    return;
  fields.size_or(config.experts_per_token, "--moe-router-topk", 2);
  fields.size_or(config.expert_feed_forward, "--moe-ffn-hidden-size", config.feed_forward, 1,
                 4 * plan::most_channels);
  fields.size_or(config.shared_feed_forward, "--moe-shared-expert-intermediate-size", 0);
  config.router_bias = fields.has("--moe-router-enable-expert-bias");
  const std::string pattern = fields.text("--moe-layer-freq").value_or("1");
  try {
    config.sparse = plan::layer_pattern(pattern, config.layers);
  } catch (const plan::InputError& error) {
    fields.refuse("--moe-layer-freq", error.what());
  }
}

constexpr int cased_vocabulary = 28996;  // of cased word pieces

/// Reads --vocab-size, or uses the vocabulary of the named tokenizer.
void read_vocabulary(MegatronFields& fields, DescribedTransformer& told) {
  int& vocabulary = told.training.model.vocabulary;
  const TokenizerWords words{.type = fields.text("--tokenizer-type").value_or(""),
                             .model = fields.text("--tokenizer-model").value_or(""),
                             .file = fields.text("--vocab-file").value_or("")};
  const auto known = known_vocabulary(words);
  if (fields.has("--vocab-size")) {
    fields.size(vocabulary, "--vocab-size");
    vocabulary += words.type == "NullTokenizer";  // it adds an end-of-document token
  } else if (known) {
    vocabulary = known->size;
    told.assumed.push_back(fmt::format("--vocab-size {}, as {} has it", vocabulary, known->whose));
  } else if (told.options.family == "bert" && words.type.empty()) {
    vocabulary = cased_vocabulary;
    told.assumed.push_back(
        fmt::format("--vocab-size {}, as BERT's cased word pieces have it", vocabulary));
  } else if (words.type.empty()) {
    fields.missing("--vocab-size");
    vocabulary = 1;
  } else {
    fields.refuse(
        "--tokenizer-type",
        fmt::format("the vocabulary size of {} is unknown: set --vocab-size", words.type));
    vocabulary = 1;
  }
}

void read_ends(MegatronFields& fields, plan::TransformerConfig& config) {
  fields.size_or(config.vocabulary_multiple, "--make-vocab-size-divisible-by", 128);
  const std::string positions =
      fields.choice("--position-embedding-type",
                    {"learned_absolute", "rope", "yarn", "mrope", "relative", "none"});
  config.learned_positions = positions == "learned_absolute" &&
                             !fields.has("--use-rotary-position-embeddings") &&
                             !fields.has("--no-position-embedding");
  config.tied = !fields.has("--untie-embeddings-and-output-weights");
  const std::string norm = fields.choice("--normalization", {"LayerNorm", "RMSNorm"});
  config.norm = norm == "RMSNorm" ? plan::NormKind::Root : plan::NormKind::Layer;
  config.dropout = fields.number_or("--hidden-dropout", 0.1) > 0;
  fields.size_or(config.predictions, "--mtp-num-layers", 0, 0, 100);
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

/// Reads the layers of each stage; the first stage has the embedding, the last one the loss.
void read_layout(MegatronFields& fields, const std::string& text, int layers, plan::Cut& cut) {
  const std::string option = "--pipeline-model-parallel-layout";
  try {
    cut.stage_layers = transformer_layers(plan::parse_layout(text));
  } catch (const plan::InputError& error) {
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

/// Returns Megatron's option for a column of a table.
std::string option_of(const std::string& column) {
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

/// Reads the number of layers, or takes it from a hybrid's pattern.
void read_layers(MegatronFields& fields, DescribedTransformer& told) {
  plan::TransformerConfig& config = told.training.model;
  const std::string pattern = hybrid_pattern(told.options.arguments, config.layers);
  if (fields.has("--num-layers") || pattern.empty())
    return fields.size(config.layers, "--num-layers", plan::most_layers);
  MeasuredRun run;
  run.options = told.options;
  set_layers_by_pattern(run);
  config.layers = std::max(1, run.training.model.layers);
}

void read_stages(MegatronFields& fields, int layers, plan::Cut& cut) {
  fields.size_or(cut.pipeline, "--pipeline-model-parallel-size", 1);
  if (fields.has("--use-distributed-optimizer"))
    cut.zero = 1;
  fields.size_or(cut.group, "--microbatch-group-size-per-virtual-pipeline-stage", 0);
  if (const auto layout = fields.text("--pipeline-model-parallel-layout"))
    return read_layout(fields, *layout, layers, cut);
  StageWords words;
  fields.size_or(words.first, "--decoder-first-pipeline-num-layers", 0);
  fields.size_or(words.last, "--decoder-last-pipeline-num-layers", 0);
  words.embedding_counts = fields.has("--account-for-embedding-in-pipeline-split");
  words.loss_counts = fields.has("--account-for-loss-in-pipeline-split");
  read_chunks(fields, layers + words.embedding_counts + words.loss_counts, cut);
  if (!fields.are_sound())
    return;
  if (const auto wrong = cut_by_words(words, layers, cut))
    fields.refuse(option_of(wrong->column), wrong->message);
}

}  // namespace

DescribedTransformer transformer_from_megatron(std::string_view text, const std::string& name) {
  MegatronFields fields(text, name);
  DescribedTransformer transformer;
  plan::TransformerConfig& config = transformer.training.model;
  config.name = std::filesystem::path(name).stem().string();
  transformer.options = megatron_options(fields, text);
  read_layers(fields, transformer);
  fields.size(config.hidden, "--hidden-size");
  fields.size(config.heads, "--num-attention-heads");
  read_attention(fields, config);
  read_feed_forward(fields, config);
  read_vocabulary(fields, transformer);
  read_ends(fields, config);
  read_variants(fields, config);
  fields.size(transformer.training.sequence, "--seq-length", plan::most_tokens);
  fields.size_or(config.longest, "--max-position-embeddings", transformer.training.sequence, 1,
                 plan::most_tokens);
  read_cut(fields, transformer);
  read_stages(fields, config.layers, transformer.cut);
  fields.size_or(transformer.training.batch, "--global-batch-size", 1);
  fields.tell_missing();
  if (fields.faults().empty())
    for (const plan::ConfigFault& fault : faults_of(config))
      fields.fault(fault.member, fault.message);
  if (!fields.faults().empty())
    throw plan::InputError(plan::listed_lines(fields.faults()));
  transformer.unknown = unknown_options(fields);
  return transformer;
}

DescribedTransformer read_transformer(const std::string& file) {
  std::string text = plan::read_file(file);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || text[begin] != '{')
    return transformer_from_megatron(text, file);
  DescribedTransformer transformer;
  transformer.training.model =
      transformer_from_config(plan::JsonDocument::parse(std::move(text), file));
  const int longest = transformer.training.model.longest;
  transformer.training.sequence = longest > 0 ? std::min(longest, long_sequence) : long_sequence;
  return transformer;
}

plan::TransformerConfig transformer_named(const std::string& name) {
  if (const auto known = plan::find_transformer(name))
    return *known;
  const std::vector<std::string> known = plan::known_transformers();
  if (!std::filesystem::exists(name))
    throw plan::InputError(
        fmt::format("\"{}\" is neither a known model nor a file{}; known models: {}", name,
                    plan::did_you_mean(name, known), fmt::join(known, ", ")));
  const DescribedTransformer told = read_transformer(name);
  if (const std::string& optimizer = told.options.optimizer;
      !optimizer.empty() && optimizer != "adam")
    throw plan::InputError(
        fmt::format("{}: --optimizer {}: plans are timed with adam only, and another optimizer has "
                    "other states and another step. Set it to adam to plan for that",
                    name, optimizer));
  return told.training.model;
}

}  // namespace pipewright::models
