#pragma once

// The config.json of a model on Hugging Face, as transformers 4 and 5 write it. Fields that change
// nothing of what is computed are not looked at.

#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::plan {

/// The architectures that are known, as `model_type` names them.
std::vector<std::string> transformer_types();

struct HuggingFaceModel {
  std::string type;  // as `model_type` says it
  TransformerConfig config{};
  /// What the file sets and nothing here trains, as it stands there.
  std::vector<std::string> untrained{};
  /// The same of shares that are dropped in training.
  std::vector<std::string> dropouts{};
  friend bool operator==(const HuggingFaceModel&, const HuggingFaceModel&) = default;
};
/// Throws InputError as `transformer_from_config` does.
HuggingFaceModel hugging_face_model(const JsonDocument& document);

/// Throws InputError with every fault of the file: an unknown architecture, a missing field, sizes
/// that do not go together.
TransformerConfig transformer_from_config(const JsonDocument& document);

}  // namespace pipewright::plan
