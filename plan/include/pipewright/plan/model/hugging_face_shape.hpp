#pragma once

// A Hugging Face model folder as the model of a scenario: the content of its config.json, and the
// samples that it is trained on.

#include <string>
#include <vector>

#include "pipewright/plan/model/hugging_face.hpp"
#include "pipewright/plan/model/model_shape.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"

namespace pipewright::plan {

struct HuggingFaceShape {
  static constexpr auto kind = "hf";
  std::string path;     // the folder; absolute once a scenario was read
  bool dropout = true;  // true: as in the config; false: no dropout
  std::string type = "llama";
  TransformerShape transformer{};
  /// Settings of the config that cannot be trained, as written there.
  std::vector<std::string> untrained{};
  friend bool operator==(const HuggingFaceShape&, const HuggingFaceShape&) = default;
};
template <>
const ModelDescriptor& descriptor_of<HuggingFaceShape>();

/// Fills in the shape from the folder's config.json. Throws InputError that names the file.
HuggingFaceShape with_config(HuggingFaceShape shape);

/// Returns the number of all layers: the embedding, the decoder's layers, and norm with head.
inline int layer_count(const HuggingFaceShape& shape) {
  return shape.transformer.config.layers + 2;
}

/// Returns the transformer shape of any model that has one, or null for other models.
const TransformerShape* transformer_of(const ModelShape& shape);

}  // namespace pipewright::plan
