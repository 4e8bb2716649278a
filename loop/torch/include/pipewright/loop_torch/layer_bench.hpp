#pragma once

// A scenario's layers as the profiler wants them, with optimizers of their own: what is measured
// trains too, so it must not be the model that is trained.

#include <functional>
#include <memory>
#include <vector>

#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/rank/memory_meter.hpp"
#include "pipewright/exec/stage/optimizer.hpp"
#include "pipewright/loop_torch/workload.hpp"
#include "pipewright/profiler/cores.hpp"
#include "pipewright/profiler/profile.hpp"

namespace pipewright::loop {

class LayerBench {
 public:
  /// `wanted`: which layers are built; the others have a name alone. Empty: all.
  explicit LayerBench(const Workload& workload, const std::function<bool(int layer)>& wanted = {});

  const profiler::Subject& subject() const { return subject_; }
  exec::MemoryAccount& account() { return account_; }

 private:
  void add_layer(const exec::TrainingSetup& setup, int layer, bool wanted);

  exec::MemoryAccount account_;
  exec::OnDevice on_device_;
  at::Device device_;
  std::vector<std::unique_ptr<exec::Optimizer>> optimizers_;
  profiler::Subject subject_;
};

/// Threads that compute as ranks do: each on a core of its own where there are enough, charging the
/// account of its bench.
profiler::Cores rank_cores(const std::vector<std::unique_ptr<LayerBench>>& benches);

}  // namespace pipewright::loop
