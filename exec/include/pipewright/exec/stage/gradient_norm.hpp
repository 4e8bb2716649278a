#pragma once

// The global norm of all gradients at the end of a step; it is NaN if a gradient is not finite.
// Each rank sums the squares of its own gradients. The norm has the same bits under every
// partition, number of replicas and number of tensor-parallel ranks.

#include "pipewright/exec/stage/square_sum.hpp"
#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/exec/training/training_setup.hpp"

namespace pipewright::exec {

class GradientNorm {
 public:
  /// Adds the gradients of a stage; each replica adds its slices (CopiedParameters). A tied weight
  /// counts with its first layer only, and a weight that all tensor-parallel ranks have counts on
  /// the first rank only.
  void add(const Stage& stage, const TrainingSetup& setup, ReplicaIndex of_rest,
           ReplicaIndex of_experts);
  void add(const Stage& stage, const TrainingSetup& setup) { add(stage, setup, {}, {}); }
  /// Adds the result of another rank's `to_tensors`.
  void add(const Tensors& from_other);
  Tensors to_tensors() const;

  /// Returns a zero-dimensional float64 tensor on the device of the gradients.
  at::Tensor norm() const { return squares_.total().sqrt(); }

 private:
  SquareSum squares_;
};

/// The factor that multiplies the loss, updated after each step.
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

/// Returns true if the end of a step must check all gradients before any parameter changes.
bool needs_norm(const TrainingSetup& setup);

/// Returns how to use the gradients: divided by the loss scale, and scaled down if their norm
/// exceeds the clipping norm. `scaled_norm`: the norm of the gradients before both.
GradientUse use_of_gradients(const TrainingSetup& setup, double loss_scale,
                             const at::Tensor& scaled_norm);

}  // namespace pipewright::exec
