#pragma once

// A user's function that sees the gradients of a step after they are summed and before the
// optimizer uses them.

#include <cstdint>
#include <functional>
#include <vector>

#include "pipewright/exec/training/user_optimizer.hpp"

namespace pipewright::exec {

/// The gradient of a parameter, summed over microbatches, pipelines and the layers that share it.
/// On each stage, a tied weight has the name of the first layer with its key.
struct NamedGradient {
  RuledParameter what;
  at::Tensor value;         // the whole gradient, or a flat slice of it
  std::int64_t begin = 0;   // where the slice begins, in elements
  std::int64_t whole = -1;  // elements of the whole parameter; -1: `value` is all of it
};

/// The gradients of one stage on one rank, which the function may change in place. Under ZeRO a
/// replica of a stage has only the slice that belongs to its shard of the optimizer's states.
struct StepGradients {
  int rank = 0;  // of the job
  int stage = 0;
  int step = 0;
  double loss_scale = 1;  // factor by which the gradients are scaled up
  std::vector<NamedGradient> gradients;
};

/// Called once a step for each stage of each rank, after all sums and before gradients are clipped,
/// their norm is taken or the optimizer uses them. It runs on a thread of the rank, and calls of
/// different ranks overlap. All replicas of a stage must change their gradients in the same way.
using GradientHook = std::function<void(const StepGradients&)>;

}  // namespace pipewright::exec
