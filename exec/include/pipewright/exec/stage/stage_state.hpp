#pragma once

// What of a stage goes into a checkpoint, and back.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/exec/stage/stage.hpp"

namespace pipewright::exec {

/// Parameters, and buffers such as a batch norm's running means, by name.
std::vector<std::pair<std::string, at::Tensor>> tensors_of(const Layer& layer);

/// The parameters of a stage, from one copy of each of its shards, in their order: put together
/// where all are there, those of the first where not.
std::vector<at::Tensor> whole_parameters(const std::vector<const Stage*>& shards);

/// For what a copy of a stage speaks among those that have the same: for the stage, as the first
/// one, and for its experts.
struct Speaks {
  bool of_stage = true;
  bool of_experts = true;
};

/// Appends copies of the stage's layers, of which each shard adds its parts, and the first one what
/// all have alike. Another copy of the stage than the first adds only its experts, where it speaks
/// for them, and its shard of the optimizer's states. Not `copied`: the stage's own tensors, as far
/// as they lie on the CPU and stay when others' shards are let go of.
void append_state(const Stage& stage, const Speaks& speaks, std::vector<LayerState>& layers,
                  bool copied = true);

/// What part of a layer's tensor the stage has.
TensorPart part_held(const Stage& stage, const Layer& layer, const std::string& name);
/// The sizes of all of a tensor of which a part has these.
std::vector<std::int64_t> whole_sizes(std::vector<std::int64_t> sizes, const TensorPart& part);

/// Layer by layer: no more than one is held beside the stage. Throws InputError that names what the
/// checkpoint lacks.
void restore_weights(Stage& stage, const Checkpoint& checkpoint);
/// The same of what the optimizer keeps; behind the weights, whose masters are among it.
void restore_optimizer(Stage& stage, const Checkpoint& checkpoint);

/// Between two stages with the same layers and the same shard.
void copy_state(const Stage& from, Stage& to);

}  // namespace pipewright::exec
