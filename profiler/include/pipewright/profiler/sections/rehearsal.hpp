#pragma once

// Runs a rank's compute on one core in the order of its Program, without a pipeline: nothing is
// sent and no rank waits, except within a tensor-parallel group (played_shards.hpp). Its stages are
// those of a training and report how long each of their layers takes. So caches and memory are as
// in training.

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/profiler/activity/work_log.hpp"
#include "pipewright/profiler/layers/layer_bench.hpp"
#include "pipewright/profiler/layers/layer_samples.hpp"

namespace pipewright::profiler {

/// A rank's Program, and what its stages are built from.
struct RankProgram {
  plan::Program program;
  plan::Partition partition;
  std::vector<int> gradient_groups;  // by microbatch of the batch
  exec::JobRank rank{};
};

/// The boundary tensors of a stage, the same for each microbatch.
struct StageBoundaries {
  exec::Tensors inputs;     // empty for the model's inputs, which are loaded
  exec::Tensors gradients;  // of its outputs; empty if the stage ends with the loss
};

/// Returns the boundary tensors by stage, from one microbatch of the training that runs through all
/// of them. Layers are built one at a time, and once more for the backward.
std::vector<StageBoundaries> borders_of(const LayerBench& bench, const plan::Partition& partition);

class Rehearsal {
 public:
  /// Keeps a reference to `bench`. Runs the instructions that compute; gradients are not summed
  /// over ranks.
  Rehearsal(const LayerBench& bench, const RankProgram& played,
            std::vector<StageBoundaries> borders);
  Rehearsal(Rehearsal&&) noexcept;
  ~Rehearsal();

  /// Sets the gradients of a stage's outputs, in place of the boundary tensors.
  void take_gradients(int stage, exec::Tensors gradients) {
    borders_.at(static_cast<std::size_t>(stage)).gradients = std::move(gradients);
  }

  /// Runs the Program once. Appends to `samples`, by layer, the loss last; null if nothing is
  /// recorded.
  void play(std::vector<LayerSamples>* samples);
  /// Runs the Program once as training does, waiting for the device only at the end. `log`, if any,
  /// gets the range of each layer's part; the loss counts as the layer after the last. Returns how
  /// long it took.
  plan::Seconds play_through(WorkLog* log);
  /// Returns how long each instruction of the rank took in the last run; 0 if it computes nothing.
  /// Tensor-parallel communication is included, unless it is simulated.
  const std::vector<double>& seconds() const { return seconds_; }
  const std::vector<double>& shard_seconds() const { return shard_seconds_; }
  /// Returns how much of the communication was waiting for a late rank.
  const std::vector<double>& late_seconds() const { return late_seconds_; }
  /// Returns how long producing the targets took, for each LOAD of the last stage.
  const std::vector<double>& target_seconds() const;
  /// Returns one of the rank's stages.
  exec::Stage& stage(int index) { return *stages_.at(index); }

 private:
  class LayerClock;

  void run_script();
  void receive(const plan::Instruction& i);
  bool perform(const plan::Instruction& i);

  const LayerBench& bench_;
  std::vector<StageBoundaries> borders_;
  std::vector<plan::Instruction> script_;  // each microbatch with a slot
  exec::Pass pass_;
  int slots_ = 1;
  std::unique_ptr<LayerClock> clock_;
  std::map<int, std::unique_ptr<exec::Stage>> stages_;
  void find_late(const std::vector<int>& meetings);

  std::vector<double> seconds_, shard_seconds_, late_seconds_;
};

}  // namespace pipewright::profiler
