#pragma once

#include "pipewright/plan/model/model.hpp"

namespace pipewright::plan {

/// A GPT of pre-norm blocks over learned token and position embeddings; layer 0 is the embedding,
/// the last layer is norm and head.
struct GptShape {
  int blocks = 6;
  int hidden = 256;
  int heads = 4;
  int sequence = 128;    // tokens of one sample
  int vocabulary = 256;  // 256: the bytes of a text
  friend bool operator==(const GptShape&, const GptShape&) = default;
};
Model gpt_model(const GptShape& shape);

}  // namespace pipewright::plan
