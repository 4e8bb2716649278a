#pragma once

// Sizes of public transformers, so that an option or a table of runs can name a model instead.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::plan {

/// Returns a model by name, ignoring case, blanks, dashes and underscores; nothing if it is
/// unknown.
std::optional<TransformerConfig> find_transformer(const std::string& name);
std::vector<std::string> known_transformers();

}  // namespace pipewright::plan
