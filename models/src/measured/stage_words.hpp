#pragma once

// In which words a row says how many layers each stage has: Megatron-LM's, of which there are
// four.

#include <optional>
#include <string>

#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::models {

struct StageWords {
  std::string layout{};           // --pipeline-model-parallel-layout
  int first = 0, last = 0;        // layers of the first and of the last rank; 0: not said
  bool embedding_counts = false;  // as a layer of the first stage
  bool loss_counts = false;       // … of the last
};

struct StageFault {
  std::string column;
  std::string message;
};

/// Sets the cut's `stage_layers`, and by a layout its `chunks`, where the words say more than that
/// all stages have as many. Answers what is wrong with them.
std::optional<StageFault> cut_by_words(const StageWords& words, int layers, plan::Cut& cut);

}  // namespace pipewright::models
