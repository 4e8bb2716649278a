#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/small_folder.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "print/model_table.hpp"

namespace pipewright::cli {
namespace {

struct ModelOptions {
  std::string file;
  std::string init;  // a large model's name
  plan::SmallSizes small;
  std::optional<int> tensor, expert, context, microbatch, sequence;
  bool sequence_parallel = false;
  std::string recompute;
  std::string attention;
  bool predictions = false;
  std::string out;
  bool json = false;
};

/// Returns the transformer of the file, with the changes of the command line.
models::DescribedTransformer asked_for(const ModelOptions& options) {
  models::DescribedTransformer transformer = models::read_decoder(options.file, options.sequence);
  plan::TransformerTraining& training = transformer.training;
  plan::Cut& cut = transformer.cut;
  say_reading(transformer, options.file);
  cut.tensor = options.tensor.value_or(cut.tensor);
  cut.expert = options.expert.value_or(cut.expert);
  cut.context = options.context.value_or(cut.context);
  cut.microbatch = options.microbatch.value_or(cut.microbatch);
  cut.sequence_parallel = cut.sequence_parallel || options.sequence_parallel;
  if (!options.recompute.empty())
    cut.recompute = plan::recompute_mode(options.recompute);
  training.sequence = options.sequence.value_or(training.sequence);
  training.predictions = options.predictions;
  if (!options.attention.empty())
    training.attention =
        options.attention == "scores" ? plan::AttentionKind::Scores : plan::AttentionKind::Fused;
  try {
    plan::require_cut(training, cut);
  } catch (const plan::InputError& error) {
    throw plan::InputError(fmt::format("{}: {}", options.file, error.what()));
  }
  return transformer;
}

/// Writes the folder of a small model and sets it as the file to show.
void write_small(ModelOptions& options) {
  if (!options.file.empty() || options.out.empty())
    throw plan::InputError("--init NAME writes a model to the folder of --out: omit FILE");
  const plan::Json config = plan::small_config(options.init, options.small);
  const std::filesystem::path folder = options.out;
  std::filesystem::create_directories(folder);
  options.file = (folder / "config.json").string();
  options.out.clear();
  plan::write_file(options.file, config.dump(2) + "\n");
}

int show_model(const ModelOptions& asked) {
  ModelOptions options = asked;
  const plan::SmallSizes& small = options.small;
  if (!options.init.empty())
    write_small(options);
  else if (small.layers || small.hidden || small.vocabulary)
    throw plan::InputError("--layers, --hidden and --vocabulary need --init");
  else if (options.file.empty())
    throw plan::InputError("a FILE is needed, or --init NAME");
  const models::DescribedTransformer transformer = asked_for(options);
  if (!options.out.empty())
    plan::write_file(options.out, to_json(plan::transformer_model(transformer.training.model,
                                                                  transformer.training.sequence))
                                          .dump(2) +
                                      "\n");
  if (options.json)
    fmt::print("{}\n", model_json(transformer).dump(2));
  else
    fmt::print("{}", model_table(transformer));
  return Done;
}

Command describe(ModelOptions& options) {
  const auto devices = [](std::string names, std::optional<int>& target, std::string help) {
    return Option{.names = std::move(names),
                  .target = &target,
                  .help = std::move(help),
                  .value = "INT",
                  .numbers = Numbers::Positive};
  };
  return {
      .name = "model",
      .summary = "Count a transformer's parameters, FLOPs and bytes by layer",
      .options =
          {{.names = "file",
            .target = &options.file,
            .help = "A config.json of Hugging Face, or a file with Megatron's arguments",
            .value = "FILE"},
           {.names = "--init",
            .target = &options.init,
            .help = "Write a small model of this model's kind to the folder --out",
            .value = "NAME",
            .suggestions = plan::known_folders()},
           devices("--layers", options.small.layers, "Number of its layers"),
           devices("--hidden", options.small.hidden,
                   "Its hidden size; heads and feed-forward shrink with it"),
           devices("--vocabulary", options.small.vocabulary, "Size of its vocabulary"),
           devices(
               "--tensor", options.tensor,
               "Number of tensor-parallel devices, which partition heads, widths and vocabulary"),
           {.names = "--sequence-parallel",
            .target = &options.sequence_parallel,
            .help = "These devices also partition the tokens between those layers (sequence "
                    "parallelism)"},
           devices("--expert", options.expert,
                   "Number of expert-parallel devices, which partition the experts"),
           devices("--context", options.context,
                   "Number of context-parallel devices, which partition each sequence"),
           devices("--microbatch", options.microbatch,
                   "Number of sequences per microbatch; default: 1"),
           devices("--sequence", options.sequence,
                   "Number of tokens per sequence; default: Megatron's --seq-length, or the "
                   "maximum of a config.json, but at most 4096"),
           {.names = "--recompute",
            .target = &options.recompute,
            .help = "Activations that the backward recomputes instead of keeping them",
            .value = "MODE",
            .choices = plan::recompute_modes()},
           {.names = "--attention",
            .target = &options.attention,
            .help = "scores: the attention writes its scores to memory; fused: it does not",
            .value = "KIND",
            .choices = {"fused", "scores"}},
           {.names = "--predictions",
            .target = &options.predictions,
            .help = "Include the modules for multi-token prediction (MTP)"},
           {.names = "-o,--out",
            .target = &options.out,
            .help = "Write the layers as a model file; with --init: the folder",
            .value = "FILE"},
           {.names = "--json", .target = &options.json, .help = "Print one JSON document"}},
      .examples =
          "Examples: pipewright model config.json --tensor 8 --sequence-parallel "
          "--sequence 8192 --recompute selective\n"
          "          pipewright model --init llama3-70b --layers 4 --hidden 512 -o small"};
}

}  // namespace

Command model_command() { return make_command(describe, show_model); }

}  // namespace pipewright::cli
