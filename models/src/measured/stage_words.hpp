#pragma once

// Megatron-LM's four ways to specify the layers of each stage, as a row of a table has them.

#include <optional>
#include <string>

#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::models {

struct StageWords {
  std::string layout{};           // --pipeline-model-parallel-layout
  int first = 0, last = 0;        // layers of the first and of the last rank; 0: not given
  bool embedding_counts = false;  // as a layer of the first stage
  bool loss_counts = false;       // as a layer of the last stage
};

struct StageFault {
  std::string column;
  std::string message;
};

/// Sets the cut's `stage_layers` and, for a layout, its `chunks`, unless all stages have the same
/// number of layers by default. Returns a fault if the settings are inconsistent.
std::optional<StageFault> cut_by_words(const StageWords& words, int layers, plan::Cut& cut);

}  // namespace pipewright::models
