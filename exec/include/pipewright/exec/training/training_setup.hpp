#pragma once

// What is trained, on what, and by which rules: all that does not depend on how the work is laid
// out over ranks.

#include <vector>

#include "pipewright/exec/data/dataset.hpp"
#include "pipewright/exec/training/gradient_hook.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/exec/training/optimizer.hpp"

namespace pipewright::exec {

/// The loss is multiplied by `scale` before the backward and the gradients are divided by it, so
/// that small ones survive 16 bits. A step whose gradients are not all finite is skipped on every
/// rank; a dynamic scale then halves, and doubles after `growth_interval` good steps.
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
  int microbatch_size = 1;  // samples; noted in checkpoints

  /// float32, or bfloat16 or float16 for parameters, activations and gradients; the loss and the
  /// optimizer then still compute in float32.
  at::ScalarType precision = at::kFloat;
  LossScaling loss_scaling{};
  double clip_norm = 0;        // the largest global norm of the gradients; 0: any
  GradientHook before_step{};  // sees each step's gradients, and may change them
  /// Gradients are added up in an order that does not depend on the plan: results have the same
  /// bits under every schedule, partition and number of ranks.
  bool exact = true;
  /// In exact mode the gradients of the batch are added up in this many equal groups of
  /// microbatches, and then the groups are. Each pipeline, and each direction of a pipeline, must
  /// own whole groups. 0: one group for each of those.
  int gradient_groups = 0;
  /// In how many equal parts a product over a width that shards share out is added up. 0: one for
  /// each shard.
  int tensor_groups = 0;
  plan::CpuBranch cpu_branch = plan::CpuBranch::Best;  // of the whole process, see cpu_branch.hpp
};

}  // namespace pipewright::exec
