#pragma once

// Checkpoints: what training needs to go on, in one file per layer, so that any other partition,
// schedule, number of ranks, replicas or shards can load it. Random numbers and data are functions
// of seed and step (see layer.hpp and dataset.hpp): these two are the random-number state and the
// data position, and there is nothing else to save of either.
//
//   FOLDER/step_00000010/layer_003.safetensors               parameters
//                        optimizer_003.safetensors           optimizer state
//                        optimizer_003-part002.safetensors   the slices of it that part 2 holds;
//                        layer_003-part002.safetensors       and what its shard has of parameters
//                        manifest.json                       training state, and per file its
//                                                            tensors, size and CRC-32C
//
// A checkpoint is written under another name and takes its own only when all of it is on the disk:
// a job may be killed at any instant. A FOLDER belongs to one job at a time.

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

struct Manifest;  // what manifest.json says

/// A checkpoint on the disk. Everything throws InputError that names the file and what is wrong
/// with it.
class Checkpoint {
 public:
  /// The one in `folder`, such as FOLDER/step_00000010: its manifest is checked, and whether its
  /// files are there in full size.
  static Checkpoint open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const TrainingState& training() const;
  std::vector<LayerShape> layers() const;
  /// Layer `index`, with the checksums of its files checked. Slices are put together: a tensor that
  /// was saved in slices comes back whole, but flat. What shards share out comes in its parts, in
  /// their order.
  LayerState layer(int index) const;
  /// Only one half of it is read.
  LayerState parameters_of(int index) const;
  LayerState optimizer_of(int index) const;
  /// Reads all files and checks them against their checksums.
  void verify() const;

 private:
  LayerState read(int index, bool parameters, bool optimizer) const;

  Checkpoint(std::filesystem::path folder, std::shared_ptr<const Manifest> manifest);
  std::filesystem::path folder_;
  std::shared_ptr<const Manifest> manifest_;
};

}  // namespace pipewright::exec
