#pragma once

// The weights of DeepSpeed's checkpoints, and what its files are called. PipelineModule writes a
// file for each layer that is a module; other models one file for each rank of their model.

#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/named_weights.hpp"
#include "pipewright/plan/cluster/topology.hpp"

namespace pipewright::exec {

/// PipelineModule.ckpt_prefix: FOLDER/TAG/module-pipe_00-model_01, the rank's place along all axes
/// but data.
std::filesystem::path ckpt_prefix(const std::filesystem::path& folder, const std::string& tag,
                                  const plan::Topology& topology, int rank);

/// PipelineModule.ckpt_layer_path: FOLDER/layer_03-model_00-model_states.pt, the rank's place along
/// all axes but pipe and data. `layer`: of the whole model.
std::filesystem::path ckpt_layer_path(const std::filesystem::path& folder, int layer,
                                      const plan::Topology& topology, int rank);

/// PipelineModule.ckpt_layer_path_list: the files of a layer that are in the folder, sorted.
std::vector<std::filesystem::path> ckpt_layer_path_list(const std::filesystem::path& folder,
                                                        int layer);

/// The layers' files of a folder as weights of a model with these layers, in their order: what
/// layer 3 calls "weight" is then "NAME.weight". A layer without a file has none. Throws InputError
/// where there is no file at all, or one of another layer, and where a layer lies in several files:
/// those of ranks that cut its tensors.
NamedWeights deepspeed_layers(const std::filesystem::path& folder,
                              const std::vector<std::string>& layers);

/// What stands under "module" in a file such as mp_rank_00_model_states.pt. Throws InputError where
/// there is no tensor.
NamedWeights deepspeed_module(const std::filesystem::path& file);

}  // namespace pipewright::exec
