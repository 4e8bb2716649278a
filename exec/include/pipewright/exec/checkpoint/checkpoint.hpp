#pragma once

// Checkpoints: the state that training needs to resume, in one file per layer, so that any other
// partition, schedule, number of ranks, data-parallel replicas or tensor-parallel ranks can load
// it. Random numbers and data are functions of seed and step (see layer.hpp and dataset.hpp). Seed
// and step are therefore the whole random-number state and data position.
//
//   FOLDER/step_00000010/layer_003.safetensors               parameters
//                        optimizer_003.safetensors           optimizer state
//                        optimizer_003-part002.safetensors   part 2's slices of that state
//                        layer_003-part002.safetensors       and its part of partitioned parameters
//                        manifest.json                       training state, and for each file its
//                                                            tensors, size and CRC-32C
//
// A checkpoint is written under a temporary name and renamed only when all of it is on the disk,
// because a job may be killed at any instant. A FOLDER belongs to one job at a time.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/safetensors.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"

namespace pipewright::exec {

struct LayerShape {
  std::string name;
  std::vector<TensorShape> parameters;
};

LayerShape shape_of(const LayerState& layer);

struct Manifest;  // contents of manifest.json

/// A checkpoint on the disk. Every function throws InputError that names the file and what is wrong
/// with it.
class Checkpoint {
 public:
  /// Opens a checkpoint such as FOLDER/step_00000010. Checks its manifest, and that its files exist
  /// in full size.
  static Checkpoint open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const TrainingState& training() const;
  std::vector<LayerShape> layers() const;
  /// Returns layer `index` after checking the checksums of its files. Tensors saved in slices are
  /// joined, but flat. Tensors partitioned by tensor or expert parallelism are returned as their
  /// parts, in order.
  LayerState layer(int index) const;
  /// Read only the parameters or only the optimizer state.
  LayerState parameters_of(int index) const;
  LayerState optimizer_of(int index) const;
  /// Reads all files and compares them with their checksums.
  void verify() const;

 private:
  LayerState read(int index, bool parameters, bool optimizer) const;

  Checkpoint(std::filesystem::path folder, std::shared_ptr<const Manifest> manifest);
  std::filesystem::path folder_;
  std::shared_ptr<const Manifest> manifest_;
};

}  // namespace pipewright::exec
