#pragma once

// Reader for the config.json of a Hugging Face model, as transformers 4 and 5 write it. Fields that
// do not affect the computation are ignored.

#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::plan {

/// Returns the supported architectures, as named in `model_type`.
std::vector<std::string> transformer_types();

struct HuggingFaceModel {
  std::string type;  // value of `model_type`
  TransformerConfig config{};
  /// Settings of the file that cannot be trained here, as written there.
  std::vector<std::string> untrained{};
  /// Likewise, dropout probabilities.
  std::vector<std::string> dropouts{};
  friend bool operator==(const HuggingFaceModel&, const HuggingFaceModel&) = default;
};
/// Reads the model of a config.json. Throws InputError as `transformer_from_config` does.
HuggingFaceModel hugging_face_model(const JsonDocument& document);

/// Reads the sizes of a config.json. Throws InputError with every error of the file: an unknown
/// architecture, a missing field, or incompatible sizes.
TransformerConfig transformer_from_config(const JsonDocument& document);

}  // namespace pipewright::plan
