#pragma once

// Reads the weights of DeepSpeed's checkpoints, and knows its file names. PipelineModule writes one
// file for each layer that is a module; other models write one file for each model-parallel rank.

#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/named_weights.hpp"
#include "pipewright/plan/cluster/topology.hpp"

namespace pipewright::exec {

/// Returns PipelineModule.ckpt_prefix: FOLDER/TAG/module-pipe_00-model_01, with the rank's
/// coordinates along all axes except data.
std::filesystem::path ckpt_prefix(const std::filesystem::path& folder, const std::string& tag,
                                  const plan::Topology& topology, int rank);

/// Returns PipelineModule.ckpt_layer_path: FOLDER/layer_03-model_00-model_states.pt, with the
/// rank's coordinates along all axes except pipe and data. `layer`: its index in the whole model.
std::filesystem::path ckpt_layer_path(const std::filesystem::path& folder, int layer,
                                      const plan::Topology& topology, int rank);

/// Returns PipelineModule.ckpt_layer_path_list: the files of a layer that exist in the folder,
/// sorted.
std::vector<std::filesystem::path> ckpt_layer_path_list(const std::filesystem::path& folder,
                                                        int layer);

/// Returns the weights in a folder's layer files for a model with these layer names, in order:
/// "weight" of layer 3 is named "NAME.weight". A layer without a file has no weights. Throws
/// InputError if there is no file at all or a file of another layer, and if a layer has several
/// files, whose tensors are partitioned by tensor parallelism.
NamedWeights deepspeed_layers(const std::filesystem::path& folder,
                              const std::vector<std::string>& layers);

/// Returns the tensors under "module" in a file such as mp_rank_00_model_states.pt. Throws
/// InputError if none exists.
NamedWeights deepspeed_module(const std::filesystem::path& file);

}  // namespace pipewright::exec
