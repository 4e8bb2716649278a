#pragma once

// Megatron-LM's arguments, as they stand in a command, a script or a YAML file: sizes, the cut, and
// what a row of a table of runs says of the trainer beside them.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/models/measured/trainer_options.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::models {

/// A transformer and, where a text says that too, how it is cut.
struct DescribedTransformer {
  plan::TransformerTraining training;
  plan::Cut cut;
  TrainerOptions options{};            // of Megatron
  std::vector<std::string> assumed{};  // what was not said, and is taken to be so
  std::vector<std::string> unknown{};  // options whose meaning for time and memory is not known
  friend bool operator==(const DescribedTransformer&, const DescribedTransformer&) = default;
};

/// Throws InputError with every fault: `name:line:column: --option: …`.
DescribedTransformer transformer_from_megatron(std::string_view text, const std::string& name);

/// A config.json of Hugging Face, or a file with Megatron's arguments: whatever begins with a brace
/// is the former. That names no sequence: it is the longest, but 4096 at most.
DescribedTransformer read_transformer(const std::string& file);

/// A public model by its name, or what such a file says of one; how that cuts it is left out.
/// Throws InputError where it is neither.
plan::TransformerConfig transformer_named(const std::string& name);

}  // namespace pipewright::models
