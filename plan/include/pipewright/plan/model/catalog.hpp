#pragma once

// Registry of models, one line each: the type of the model's shape. Plan finds the model's
// declaration by this list and exec its builder; if either is missing, linking fails. Models that
// can only be predicted are in the second list.

#define PIPEWRIGHT_MODELS(MODEL) \
  MODEL(GptShape)                \
  MODEL(AlexNetShape)            \
  MODEL(VitShape)                \
  MODEL(EncoderDecoderShape)     \
  MODEL(TransformerShape)        \
  MODEL(HuggingFaceShape)        \
  MODEL(ImportedShape)
#define PIPEWRIGHT_PREDICTED_MODELS(MODEL) MODEL(MeasuredShape)

#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::plan {

#define PIPEWRIGHT_DECLARE(Shape) \
  struct Shape;                   \
  template <>                     \
  const ModelDescriptor& descriptor_of<Shape>();
PIPEWRIGHT_MODELS(PIPEWRIGHT_DECLARE)
PIPEWRIGHT_PREDICTED_MODELS(PIPEWRIGHT_DECLARE)
#undef PIPEWRIGHT_DECLARE

}  // namespace pipewright::plan
