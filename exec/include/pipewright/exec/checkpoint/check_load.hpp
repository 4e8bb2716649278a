#pragma once

// Checks, before a checkpoint is loaded, that it fits the training to be resumed.

#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"

namespace pipewright::exec {

/// The result of the check: every reason against loading, as text.
struct LoadCheck {
  std::vector<std::string> obstacles;    // the checkpoint cannot be loaded
  std::vector<std::string> differences;  // training continues, but not bit-identically
};

/// Compares the checkpoint with a model and a training. Partition, schedule, ranks and replicas do
/// not matter, so they are not arguments.
LoadCheck check_load(const Checkpoint& checkpoint, const std::vector<LayerShape>& wanted,
                     const TrainingState& wanted_training);

}  // namespace pipewright::exec
