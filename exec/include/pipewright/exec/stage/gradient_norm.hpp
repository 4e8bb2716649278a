#pragma once

// What is known of all gradients at the end of a step: their global norm, and whether each is
// finite. Each rank adds up the squares of what is its own, in whatever parts: the norm has the
// same bits under every partition, number of copies and number of shards.

#include "pipewright/exec/stage/square_sum.hpp"
#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/exec/training/training_setup.hpp"

namespace pipewright::exec {

class GradientNorm {
 public:
  /// Adds the gradients of a stage, of which each copy adds its slices (CopiedParameters). A tied
  /// weight counts with its first layer alone, one that all shards have with the first of them.
  void add(const Stage& stage, const TrainingSetup& setup, CopySeat of_rest, CopySeat of_experts);
  void add(const Stage& stage, const TrainingSetup& setup) { add(stage, setup, {}, {}); }
  /// What another rank's `to_tensors` says.
  void add(const Tensors& from_other);
  Tensors to_tensors() const;

  /// A tensor without dimensions, float64, on the device of the gradients.
  at::Tensor norm() const { return squares_.total().sqrt(); }

 private:
  SquareSum squares_;
};

/// The factor that the loss is multiplied with, from step to step.
class LossScaler {
 public:
  explicit LossScaler(const LossScaling& options) : options_(options), scale_(options.scale) {}
  double scale() const { return scale_; }
  int good_steps() const { return good_steps_; }
  void restore(double scale, int good_steps) {
    scale_ = scale;
    good_steps_ = good_steps;
  }
  void update(bool finite);

 private:
  LossScaling options_;
  double scale_;
  int good_steps_ = 0;
};

/// Whether the end of a step must look at all gradients before any parameter changes.
bool needs_norm(const TrainingSetup& setup);

/// Gradients are divided by the loss scale, and made smaller where their norm is clipped.
/// `scaled_norm`: of the gradients as they are.
GradientUse use_of_gradients(const TrainingSetup& setup, double loss_scale,
                             const at::Tensor& scaled_norm);

}  // namespace pipewright::exec
