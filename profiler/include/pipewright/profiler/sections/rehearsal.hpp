#pragma once

// What a rank computes, played through on one core in the order of its Program, without a pipeline:
// nothing is sent and nobody waits, but shards for each other where they meet (played_shards.hpp).
// Its stages are those of a training, which say how long each of their layers takes. So it has the
// caches and the memory of training.

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/profiler/activity/work_log.hpp"
#include "pipewright/profiler/layers/layer_bench.hpp"
#include "pipewright/profiler/layers/layer_samples.hpp"

namespace pipewright::profiler {

/// A rank of a Program, and what its stages are made from.
struct RankProgram {
  plan::Program program;
  plan::Partition partition;
  std::vector<int> gradient_groups;  // of each microbatch of the batch
  exec::JobRank rank{};
};

/// What comes to a stage from its neighbours, the same for each microbatch.
struct StageBorders {
  exec::Tensors inputs;     // empty: the model's, which are loaded
  exec::Tensors gradients;  // of its outputs; empty: the stage ends with the loss
};

/// By stage: what crosses the borders when a microbatch of the training goes through all of them.
/// Layers are built one at a time, and once more for the way back.
std::vector<StageBorders> borders_of(const LayerBench& bench, const plan::Partition& partition);

class Rehearsal {
 public:
  /// The bench must outlive it. What computes is played, gradients are not summed over ranks.
  Rehearsal(const LayerBench& bench, const RankProgram& played, std::vector<StageBorders> borders);
  Rehearsal(Rehearsal&&) noexcept;
  ~Rehearsal();

  /// From here on these come to the outputs of a stage, in place of what the borders say.
  void take_gradients(int stage, exec::Tensors gradients) {
    borders_.at(static_cast<std::size_t>(stage)).gradients = std::move(gradients);
  }

  /// Plays it once. `samples`: by layer, the loss last; null: nothing is noted.
  void play(std::vector<LayerSamples>* samples);
  /// Plays it once as training does, which does not wait for the device: only at the end. `log`, if
  /// any, is told of each layer's part, the loss as the layer behind the last. Returns how long it
  /// took.
  plan::Seconds play_through(WorkLog* log);
  /// How long each instruction of the rank took the last time; 0 where it computes nothing. What it
  /// was among its shards is a part of that, but where their parts are made up.
  const std::vector<double>& seconds() const { return seconds_; }
  const std::vector<double>& shard_seconds() const { return shard_seconds_; }
  /// How much of that it waited for one that was late.
  const std::vector<double>& late_seconds() const { return late_seconds_; }
  /// By LOAD of the last stage: what producing its targets took of that.
  const std::vector<double>& target_seconds() const;
  /// One of the rank's stages.
  exec::Stage& stage(int index) { return *stages_.at(index); }

 private:
  class LayerClock;

  void run_script();
  void receive(const plan::Instruction& i);
  bool perform(const plan::Instruction& i);

  const LayerBench& bench_;
  std::vector<StageBorders> borders_;
  std::vector<plan::Instruction> script_;  // each microbatch with a slot
  exec::Pass pass_;
  int slots_ = 1;
  std::unique_ptr<LayerClock> clock_;
  std::map<int, std::unique_ptr<exec::Stage>> stages_;
  void find_late(const std::vector<int>& meetings);

  std::vector<double> seconds_, shard_seconds_, late_seconds_;
};

}  // namespace pipewright::profiler
