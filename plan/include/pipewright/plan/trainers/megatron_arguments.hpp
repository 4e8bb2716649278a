#pragma once

// Megatron-LM's arguments, as they stand in a command or a script. Options that no size follows
// from are not looked at.

#include <string>
#include <string_view>

#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::plan {

/// A transformer and, where a text says that too, how it is cut.
struct DescribedTransformer {
  TransformerTraining training;
  Cut cut;
  friend bool operator==(const DescribedTransformer&, const DescribedTransformer&) = default;
};

/// Throws InputError with every fault: `name:line:column: --option: …`.
DescribedTransformer transformer_from_megatron(std::string_view text, const std::string& name);

/// A config.json of Hugging Face, or a file with Megatron's arguments: whatever begins with a brace
/// is the former. That names no sequence: it is the longest, but 4096 at most.
DescribedTransformer read_transformer(const std::string& file);

/// A public model by its name, or what such a file says of one; how that cuts it is left out.
/// Throws InputError where it is neither.
TransformerConfig transformer_named(const std::string& name);

}  // namespace pipewright::plan
