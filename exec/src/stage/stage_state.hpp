#pragma once

// What of a stage goes into a checkpoint, and back.

#include <vector>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "stage.hpp"

namespace pipewright::exec {

/// Appends copies of the stage's layers. Another copy of the stage than the first adds only its
/// shard of the optimizer's states.
void append_state(const Stage& stage, bool is_first_copy, std::vector<LayerState>& layers);

/// Throws InputError that names what the checkpoint lacks.
void restore_state(Stage& stage, const Checkpoint& checkpoint);

/// Between two stages with the same layers and the same shard.
void copy_state(const Stage& from, Stage& to);

}  // namespace pipewright::exec
