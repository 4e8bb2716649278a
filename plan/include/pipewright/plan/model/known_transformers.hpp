#pragma once

// Sizes of public transformers, so that an option or a table of runs may name a model instead.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::plan {

/// Case, blanks, dashes and underscores of the name do not count. Nothing: it is not known.
std::optional<TransformerConfig> find_transformer(const std::string& name);
std::vector<std::string> known_transformers();

}  // namespace pipewright::plan
