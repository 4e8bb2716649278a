#pragma once

// The config.json of a model on Hugging Face. Fields that no size follows from are not looked at.

#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::plan {

/// The architectures that are known, as `model_type` names them.
std::vector<std::string> transformer_types();

/// Throws InputError with every fault of the file: an unknown architecture, a missing field, sizes
/// that do not go together.
TransformerConfig transformer_from_config(const JsonDocument& document);

}  // namespace pipewright::plan
