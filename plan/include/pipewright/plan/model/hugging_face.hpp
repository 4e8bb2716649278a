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
  /// Settings of the file that are supported in prediction but not in training, as written there,
  /// such as `"hidden_act": "relu"`.
  std::vector<std::string> untrained{};
  /// Dropout probabilities above 0, in the same form. They are supported in prediction only, but
  /// `HuggingFaceShape::dropout` can turn them off.
  std::vector<std::string> dropouts{};
  friend bool operator==(const HuggingFaceModel&, const HuggingFaceModel&) = default;
};
/// Reads a config.json. Throws InputError that lists every error of the file: an unknown
/// architecture, missing fields, or incompatible sizes.
HuggingFaceModel hugging_face_model(const JsonDocument& document);

/// Returns only `hugging_face_model(document).config`.
TransformerConfig transformer_from_config(const JsonDocument& document);

}  // namespace pipewright::plan
