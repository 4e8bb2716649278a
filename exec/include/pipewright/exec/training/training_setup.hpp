#pragma once

// The training itself: model, data, optimizer and rules, independent of how the work is distributed
// over ranks.

#include <vector>

#include "pipewright/exec/data/dataset.hpp"
#include "pipewright/exec/training/gradient_hook.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/exec/training/optimizer.hpp"

namespace pipewright::exec {

/// The scaling of the loss: the loss is multiplied by `scale` before the backward and the gradients
/// are divided by it, so that small gradients do not underflow in 16 bits. A step whose gradients
/// are not all finite is skipped on every rank. A dynamic scale is then halved, and doubled after
/// `growth_interval` good steps.
struct LossScaling {
  double scale = 1;
  bool dynamic = false;
  int growth_interval = 2000;
};

struct TrainingSetup {
  std::vector<LayerSpec> layers;
  Loss loss;
  const Dataset* data = nullptr;  // outlives the executor
  OptimizerOptions optimizer{};
  int base_seed = 0;
  int microbatch_size = 1;  // in samples; recorded in checkpoints

  /// float32, or bfloat16 or float16 for parameters, activations and gradients. The loss and the
  /// optimizer always compute in float32.
  at::ScalarType precision = at::kFloat;
  LossScaling loss_scaling{};
  double clip_norm = 0;        // largest global norm of the gradients; 0: unlimited
  GradientHook before_step{};  // called with each step's gradients, which it may change
  /// Gradients are summed in an order that does not depend on the plan: results have the same bits
  /// under every schedule, partition and number of ranks.
  bool exact = true;
  /// Number of equal groups of microbatches for gradient accumulation in exact mode: gradients are
  /// summed within each group, then over groups. Each pipeline, and each direction of a pipeline,
  /// must own whole groups. 0: one group for each pipeline and direction.
  int gradient_groups = 0;
  /// Number of equal parts in which products over a partitioned width are summed. 0: one for each
  /// tensor-parallel rank.
  int tensor_groups = 0;
  plan::CpuBranch cpu_branch = plan::CpuBranch::Best;  // of the whole process, see cpu_branch.hpp
};

}  // namespace pipewright::exec
