#pragma once

// Saves the state of a stage for a checkpoint, and restores it.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/exec/stage/stage.hpp"

namespace pipewright::exec {

/// Returns parameters, and buffers such as a batch norm's running means, by name.
std::vector<std::pair<std::string, at::Tensor>> tensors_of(const Layer& layer);

/// Returns the parameters of a stage. `shards`: the tensor-parallel ranks' parts of one replica, in
/// order. Parts are joined if all are given; otherwise those of the first are returned.
std::vector<at::Tensor> whole_parameters(const std::vector<const Stage*>& shards);

/// The state that a replica of a stage saves on behalf of equal replicas: the stage itself, if it
/// is the first, and its experts.
struct StateOwner {
  bool of_stage = true;
  bool of_experts = true;
};

/// Appends copies of the stage's layers. Each tensor-parallel rank adds its parts, and the first
/// one also the tensors that all have. A replica other than the first adds only its experts, if it
/// saves them, and its shard of the optimizer's states. If not `copied`, appends the stage's own
/// tensors if they are on the CPU and remain when sharded parameters are freed.
void append_state(const Stage& stage, const StateOwner& speaks, std::vector<LayerState>& layers,
                  bool copied = true);

/// Returns the part of a layer's tensor that the stage has.
TensorPart part_held(const Stage& stage, const Layer& layer, const std::string& name);
/// Returns the sizes of the whole tensor, given the sizes of a part.
std::vector<std::int64_t> whole_sizes(std::vector<std::int64_t> sizes, const TensorPart& part);

/// Restores the weights layer by layer, so that at most one layer is held in addition to the stage.
/// Throws InputError that names what the checkpoint lacks.
void restore_weights(Stage& stage, const Checkpoint& checkpoint);
/// Restores the optimizer's states. Call after the weights, because their masters are among the
/// states.
void restore_optimizer(Stage& stage, const Checkpoint& checkpoint);

/// Copies the state between two stages with the same layers and the same shard.
void copy_state(const Stage& from, Stage& to);

}  // namespace pipewright::exec
