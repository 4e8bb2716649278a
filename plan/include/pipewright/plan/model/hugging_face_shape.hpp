#pragma once

// A folder of Hugging Face as the model of a scenario: what its config.json says, and the samples
// that it is trained on.

#include <string>
#include <vector>

#include "pipewright/plan/model/hugging_face.hpp"
#include "pipewright/plan/model/model_shape.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"

namespace pipewright::plan {

struct HuggingFaceShape {
  static constexpr auto kind = "hf";
  std::string path;     // the folder; absolute where a scenario was read
  bool dropout = true;  // as the config says; else none is dropped
  std::string type = "llama";
  TransformerShape transformer{};
  std::vector<std::string> untrained{};  // of the config, as it stands there
  friend bool operator==(const HuggingFaceShape&, const HuggingFaceShape&) = default;
};
template <>
const ModelDescriptor& descriptor_of<HuggingFaceShape>();

/// What the config.json of the folder makes of the shape. Throws InputError that names the file.
HuggingFaceShape with_config(HuggingFaceShape shape);

/// All of them: the embedding, the decoder's, norm and head.
inline int layer_count(const HuggingFaceShape& shape) {
  return shape.transformer.config.layers + 2;
}

/// The sizes of a transformer, whichever way the scenario has them; null for other models.
const TransformerShape* transformer_of(const ModelShape& shape);

}  // namespace pipewright::plan
