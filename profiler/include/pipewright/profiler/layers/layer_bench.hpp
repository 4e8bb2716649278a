#pragma once

// A place where layers are measured: a device, and a memory account for the stages that are built
// there. Measuring also trains the layers, so they must not be those of the model that is trained.

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
  /// Keeps a reference to `setup`. On a GPU it must be used on the thread that made it, which has
  /// its stream.
  explicit LayerBench(const exec::TrainingSetup& setup, const exec::RankDevice& where = {},
                      const ShardSeat& seat = {});

  const exec::TrainingSetup& setup() const { return setup_; }
  /// Returns the index of the loss, which follows the last layer. Layers are numbered as in the
  /// model.
  int loss() const { return static_cast<int>(setup_.layers.size()); }
  std::string name(int layer) const;
  /// Returns the name of the GPU; empty for the CPU.
  std::string device() const;

  /// Returns the tensor-parallel place of its layers.
  exec::TensorParallelPlace place() const;
  at::Device where() const { return device_; }
  /// Builds a stage of the training on this device, charged to the account.
  std::unique_ptr<exec::Stage> build(exec::StageSpec spec) const;
  /// Waits until the device has done all submitted work.
  void finish() const;

  exec::MemoryAccount& account() { return account_; }
  /// Returns the tensor-parallel size; each stage is one of these ranks' parts.
  int shard_count() const { return seat_.count; }
  /// Returns the tensor-parallel group of that rank; null if the layers are whole.
  PlayedShards* shards() const { return shards_.get(); }

 private:
  const exec::TrainingSetup& setup_;
  ShardSeat seat_;
  std::unique_ptr<PlayedShards> shards_;
  at::Device device_;
  exec::MemoryAccount account_;
  std::optional<exec::OnDevice> on_gpu_;
};

/// Returns threads that compute as ranks do: each on its own core if there are enough, charging the
/// account of its bench.
Cores rank_cores(const std::vector<std::unique_ptr<LayerBench>>& benches);
/// Returns such threads for the ranks from `first` on in a job of `job_ranks` ranks, whose other
/// ranks are elsewhere.
Cores rank_cores(const std::vector<std::unique_ptr<LayerBench>>& benches, int first, int job_ranks);

}  // namespace pipewright::profiler
