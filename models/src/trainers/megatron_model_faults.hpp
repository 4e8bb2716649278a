#pragma once

// Names the fields of a model that Megatron-LM's arguments cannot express. They are read back, so
// a field that is neither written nor read is reported and not dropped.

#include <string>
#include <vector>

#include "pipewright/plan/model/transformer_shape.hpp"

namespace pipewright::models {

/// Returns the fields that Megatron-LM would train differently, one line per field:
/// "model.score_cap=50.0: …".
std::vector<std::string> model_faults(const plan::TransformerShape& shape);

}  // namespace pipewright::models
