#pragma once

// One line per model: the type of its shape. What plan declares of it and what exec builds of it
// are found by this list; where one of the two is missing, nothing links. One that is only
// predicted stands in the second list.

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
