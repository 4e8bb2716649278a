#pragma once

// What is known of all gradients at the end of a step: their global norm, and whether each is
// finite. Squares are taken tensor by tensor, of a tensor that shards share out group by group
// (TrainingSetup::tensor_groups), and added up in the order of the model, so that the norm has the
// same bits under every partition and number of shards.

#include <array>
#include <map>

#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/exec/training/training_setup.hpp"

namespace pipewright::exec {

class GradientNorm {
 public:
  /// Adds the gradients of a stage. A tied weight counts with its first layer alone.
  void add(const Stage& stage, const TrainingSetup& setup);
  /// What another rank's `to_tensors` says; each parameter counts once.
  void add(const Tensors& from_other);
  Tensors to_tensors() const;

  /// A tensor without dimensions, float64, on the device of the gradients.
  at::Tensor norm() const;

 private:
  /// Layer, its parameter, group of that.
  using Name = std::array<std::int64_t, 3>;
  std::map<Name, at::Tensor> squares_;  // without dimensions
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
