#pragma once

// Reads Megatron-LM's arguments from a command, a script or a YAML file: the sizes, the
// parallelism, and the other trainer options that a table of runs can have.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/models/measured/trainer_options.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::models {

/// A transformer and, if given, its parallelism.
struct DescribedTransformer {
  plan::TransformerTraining training;
  plan::Cut cut;
  TrainerOptions options{};            // of Megatron-LM
  std::vector<std::string> assumed{};  // values that were not given, and their defaults
  std::vector<std::string> unknown{};  // options with an unknown effect on time and memory
  friend bool operator==(const DescribedTransformer&, const DescribedTransformer&) = default;
};

/// Reads the arguments. Throws InputError with all faults: `name:line:column: --option: …`.
DescribedTransformer transformer_from_megatron(std::string_view text, const std::string& name);

/// Reads a Hugging Face config.json or a file with Megatron's arguments. A file that begins with a
/// brace is a config.json, which has no sequence length: the maximum length is used, but at most
/// 4096.
DescribedTransformer read_transformer(const std::string& file);

/// Returns a public model by name, or the model in such a file, without its parallelism. Throws
/// InputError if it is neither, or if the file's optimizer is not adam.
plan::TransformerConfig transformer_named(const std::string& name);

}  // namespace pipewright::models
