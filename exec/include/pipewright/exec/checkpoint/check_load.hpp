#pragma once

// Before a checkpoint is loaded: does it fit the training that is to go on?

#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"

namespace pipewright::exec {

/// Whether a checkpoint can be loaded into a model: every reason against it, in words.
struct LoadCheck {
  std::vector<std::string> obstacles;    // it cannot be loaded
  std::vector<std::string> differences;  // it continues, but not bit-identically
};

/// Partition, schedule, ranks and replicas make no difference, so they are not asked for.
LoadCheck check_load(const Checkpoint& checkpoint, const std::vector<LayerShape>& wanted,
                     const TrainingState& wanted_training);

}  // namespace pipewright::exec
