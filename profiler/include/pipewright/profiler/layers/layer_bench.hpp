#pragma once

// The environment in which layers are measured: a device, a memory account for the stages that are
// built on it, and a place in a tensor-parallel group. Measuring updates the layers' parameters, so
// the stages have layers of their own, not those of a model in training.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/memory/memory_meter.hpp"
#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/exec/training/training_setup.hpp"
#include "pipewright/profiler/cores/cores.hpp"
#include "pipewright/profiler/layers/played_shards.hpp"

namespace pipewright::profiler {

class LayerBench {
 public:
  /// Keeps a reference to `setup`. On a GPU, the bench must be used on the thread that made it,
  /// because its stream is current there. `seat`: the tensor-parallel rank that is measured.
  explicit LayerBench(const exec::TrainingSetup& setup, const exec::RankDevice& where = {},
                      const ShardSeat& seat = {});

  const exec::TrainingSetup& setup() const { return setup_; }
  /// Returns the index of the loss, which follows the last layer. Layers are numbered as in the
  /// model.
  int loss() const { return static_cast<int>(setup_.layers.size()); }
  std::string name(int layer) const;
  /// Returns the name of the GPU; empty for the CPU.
  std::string device() const;

  /// Returns the tensor-parallel place with which its layers are built.
  exec::TensorParallelPlace place() const;
  at::Device where() const { return device_; }
  /// Builds a stage of the training on this device. Its memory is charged to the account.
  std::unique_ptr<exec::Stage> build(exec::StageSpec spec) const;
  /// Waits until the device has done all submitted work.
  void finish() const;

  exec::MemoryAccount& account() { return account_; }
  /// Returns the tensor-parallel size. A stage built here is one rank's part of the stage.
  int shard_count() const { return seat_.count; }
  /// Returns the tensor-parallel group of the measured rank; null if the size is 1.
  PlayedShards* shards() const { return shards_.get(); }

 private:
  const exec::TrainingSetup& setup_;
  ShardSeat seat_;
  std::unique_ptr<PlayedShards> shards_;
  at::Device device_;
  exec::MemoryAccount account_;
  std::optional<exec::OnDevice> on_gpu_;
};

/// Returns one thread for each bench. It computes as a rank's thread does: on a core of its own if
/// there are enough, and its memory is charged to the account of the bench.
Cores rank_cores(const std::vector<std::unique_ptr<LayerBench>>& benches);
/// Returns such threads for the ranks from `first` on, in a job of `job_ranks` ranks whose other
/// ranks are in other processes.
Cores rank_cores(const std::vector<std::unique_ptr<LayerBench>>& benches, int first, int job_ranks);

}  // namespace pipewright::profiler
