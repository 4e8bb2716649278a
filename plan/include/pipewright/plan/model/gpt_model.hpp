#pragma once

// A GPT over the bytes of a text, planned layer by layer; engine/models/gpt.hpp builds it.

#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::plan {

/// A GPT with pre-norm blocks and learned token and position embeddings. Layer 0 is the embedding,
/// the last layer is norm and head.
struct GptShape {
  static constexpr auto kind = "gpt";
  int blocks = 6;
  int hidden = 256;
  int heads = 4;
  int sequence = 128;    // tokens of one sample
  int vocabulary = 256;  // 256: the bytes of a text
  friend bool operator==(const GptShape&, const GptShape&) = default;
};
template <>
const ModelDescriptor& descriptor_of<GptShape>();

Model gpt_model(const GptShape& shape);

/// Returns why the heads and the vocabulary cannot be partitioned into `parts` parts, and the
/// nearest numbers that work; empty if they can. Vocabularies and widths need not divide evenly.
std::vector<std::string> faults_of_gpt_cut(const GptShape& shape, int parts);

}  // namespace pipewright::plan
