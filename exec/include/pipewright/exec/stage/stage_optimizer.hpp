#pragma once

// Accumulates a stage's gradients over microbatches, whole or (ZeRO stages 2 and 3) one shard of
// them, and steps the optimizer with the sums.

#include <memory>

#include "pipewright/exec/stage/pass.hpp"
#include "pipewright/exec/stage/stage_layers.hpp"

namespace pipewright::exec {

class GradientSums;
class ScatteredGradients;

class StageOptimizer {
 public:
  /// Keeps all references.
  StageOptimizer(const StageSpec& spec, const TrainingSetup& setup, const StageLayers& layers);
  ~StageOptimizer();

  Optimizer& optimizer() const { return *optimizer_; }
  GradientSums& gradients() const { return *gradients_; }        // without sharding
  ScatteredGradients& scattered() const { return *scattered_; }  // with sharding

  /// Allocate and free the memory of whole parameters under ZeRO stage 3, without setting values.
  /// Without parameter sharding both do nothing. Initially the memory is not allocated.
  void allocate_parameters() { resize_parameters(true); }
  void free_parameters() { resize_parameters(false); }

  /// Call right before and right after the work that adds a microbatch's gradients to `.grad`.
  void begin(int microbatch);
  void end(int microbatch);
  /// Completes the sums of a step, and shows them to the training's hook.
  void finish_gradients(const Pass& pass);
  /// Updates the parameters. In an asynchronous Program the weights that microbatches in flight
  /// have used keep their values.
  void step(const plan::Instruction& i, double learning_rate, const GradientUse& use);

 private:
  void resize_parameters(bool whole);

  const StageSpec& spec_;
  const TrainingSetup& setup_;
  const StageLayers& layers_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<GradientSums> gradients_;  // null with sharding; `scattered_` is null without
  std::unique_ptr<ScatteredGradients> scattered_;
};

}  // namespace pipewright::exec
