#pragma once

// Where layers are measured: a device, and an account of memory for the stages that are built
// there. What is measured trains too, so it must not be the model that is trained.

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
  /// `setup` must outlive it. On a GPU it is used on the thread that made it, which has its stream.
  explicit LayerBench(const exec::TrainingSetup& setup, const exec::RankDevice& where = {},
                      const ShardSeat& seat = {});

  const exec::TrainingSetup& setup() const { return setup_; }
  /// Layers are numbered as in the model; the loss is one behind the last of them.
  int loss() const { return static_cast<int>(setup_.layers.size()); }
  std::string name(int layer) const;
  /// The name of the GPU; empty: the CPU.
  std::string device() const;

  /// Which part of its layers it has.
  exec::ShardPlace place() const;
  at::Device where() const { return device_; }
  /// A stage of the training on this device, charged to the account.
  std::unique_ptr<exec::Stage> build(exec::StageSpec spec) const;
  /// Waits until the device has done all that it was given.
  void finish() const;

  exec::MemoryAccount& account() { return account_; }
  /// By how many shards the layers here are shared out; each stage has one of them.
  int shard_count() const { return seat_.count; }
  /// Through which that one passes on what it has; null: the layers are whole.
  PlayedShards* shards() const { return shards_.get(); }

 private:
  const exec::TrainingSetup& setup_;
  ShardSeat seat_;
  std::unique_ptr<PlayedShards> shards_;
  at::Device device_;
  exec::MemoryAccount account_;
  std::optional<exec::OnDevice> on_gpu_;
};

/// Threads that compute as ranks do: each on a core of its own where there are enough, charging the
/// account of its bench.
Cores rank_cores(const std::vector<std::unique_ptr<LayerBench>>& benches);
/// The same for ranks from `first` on of a job of so many, whose others are elsewhere.
Cores rank_cores(const std::vector<std::unique_ptr<LayerBench>>& benches, int first, int job_ranks);

}  // namespace pipewright::profiler
