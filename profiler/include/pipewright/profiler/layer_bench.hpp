#pragma once

// What is measured: the layers of a training, with optimizers and an account of memory of their
// own. What is measured trains too, so it must not be the model that is trained.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/memory/memory_meter.hpp"
#include "pipewright/exec/training/optimizer.hpp"
#include "pipewright/exec/training/training_setup.hpp"
#include "pipewright/profiler/cores.hpp"

namespace pipewright::profiler {

/// Layers are numbered as in the model; the loss is one behind the last of them.
class LayerBench {
 public:
  /// `setup` must outlive it. `wanted`: which layers are built; the others have a name alone.
  /// Empty: all. On a GPU it is used on the thread that made it, which has its stream.
  explicit LayerBench(const exec::TrainingSetup& setup, const exec::RankDevice& where = {},
                      const std::function<bool(int layer)>& wanted = {});

  std::size_t loss() const { return layers_.size(); }
  std::string name(std::size_t layer) const;
  const exec::TrainingSetup& setup() const { return setup_; }
  /// Of the GPU; empty: the CPU.
  std::string device() const;

  /// One microbatch of input, in the training's precision.
  at::Tensor load() const;
  /// One microbatch of targets.
  at::Tensor load_target() const;
  plan::Bytes target_size() const { return {static_cast<std::int64_t>(target_.nbytes())}; }
  /// `selective`: under selective recomputation.
  at::Tensor forward(std::size_t layer, const at::Tensor& input, bool selective = false) const;
  exec::Tensors parameters(std::size_t layer) const;
  /// `leaves_weights`: graphs that hold the old weights' memory keep it as it is.
  void optimizer_step(std::size_t layer, bool leaves_weights = false) const;
  /// Waits until the device has done all that it was given.
  void finish() const;

  exec::MemoryAccount& account() { return account_; }

 private:
  struct Built {
    std::shared_ptr<exec::Layer> layer;
    std::unique_ptr<exec::Optimizer> optimizer;
  };
  Built build(int layer) const;

  const exec::TrainingSetup& setup_;
  at::Device device_;
  exec::MemoryAccount account_;
  std::optional<exec::OnDevice> on_gpu_;
  std::vector<Built> layers_;
  at::Tensor target_;
};

/// Threads that compute as ranks do: each on a core of its own where there are enough, charging the
/// account of its bench.
Cores rank_cores(const std::vector<std::unique_ptr<LayerBench>>& benches);
/// The same for ranks from `first` on of a job of so many, whose others are elsewhere.
Cores rank_cores(const std::vector<std::unique_ptr<LayerBench>>& benches, int first, int job_ranks);

}  // namespace pipewright::profiler
