#pragma once

// Reads Megatron-LM's arguments from a command, a script or a YAML file: the sizes, the
// parallelism, and the other trainer options that a table of runs can have.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/models/measured/trainer_options.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::models {

/// An option whose effect is not included in what is computed from the arguments.
struct UncountedOption {
  std::string option;     // "--qk-l2-norm"
  std::string reason;     // "is unknown: …"
  bool of_model = false;  // concerns the model, not only the described run
  friend bool operator==(const UncountedOption&, const UncountedOption&) = default;
};

/// A transformer and, if given, its parallelism.
struct DescribedTransformer {
  plan::TransformerTraining training;
  plan::Cut cut;
  TrainerOptions options{};            // of Megatron-LM
  bool tells_batch = true;             // if not, the batch is one microbatch for each pipeline
  std::vector<std::string> assumed{};  // values that were not given, and their defaults
  std::vector<UncountedOption> uncounted{};
  friend bool operator==(const DescribedTransformer&, const DescribedTransformer&) = default;
};

/// Reads the arguments. `sequence` stands for a missing --seq-length. Throws InputError with all
/// faults: `name:line:column: --option: …`.
DescribedTransformer transformer_from_megatron(std::string_view text, const std::string& name,
                                               std::optional<int> sequence = {});

/// Reads a Hugging Face config.json or a file with Megatron's arguments. A file that begins with a
/// brace is a config.json, which has no sequence length: `sequence` is used, or else the maximum
/// length, but at most 4096.
DescribedTransformer read_transformer(const std::string& file, std::optional<int> sequence = {});

/// Reads such a file for counts by layer. Throws InputError if its layers are not those of a
/// decoder: for hybrids and encoder-decoders only the described run can be predicted.
DescribedTransformer read_decoder(const std::string& file, std::optional<int> sequence = {});

/// Returns a public model by name, or the decoder in such a file. Its sequence length is `sequence`
/// or else the arguments' own; a model without one has the usual length. Throws InputError if the
/// name is neither a model nor a file, or if the file's optimizer is not adam.
DescribedTransformer transformer_named(const std::string& name, std::optional<int> sequence = {});

}  // namespace pipewright::models
