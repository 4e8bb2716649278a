#pragma once

// A look at the gradients of a step, between their sums and the optimizer.

#include <cstdint>
#include <functional>
#include <vector>

#include "pipewright/exec/training/own_optimizer.hpp"

namespace pipewright::exec {

/// The gradient of a parameter, summed over microbatches, pipelines and the layers that share it.
/// What is tied has the name of the first layer with its key on each of its stages.
struct NamedGradient {
  RuledParameter what;
  at::Tensor value;         // of the parameter's sizes, or a slice in a row
  std::int64_t begin = 0;   // of a slice, in numbers
  std::int64_t whole = -1;  // numbers of the whole parameter; -1: this is it
};

/// The gradients of one stage on one rank, which a function may change in place. With ZeRO a copy
/// of a stage has a slice of them alone, that of its optimizer's states.
struct StepGradients {
  int rank = 0;  // of the job
  int stage = 0;
  int step = 0;
  double loss_scale = 1;  // so many times what they are
  std::vector<NamedGradient> gradients;
};

/// Called for each stage of each rank once a step, after all sums and before a norm is taken,
/// clipped or stepped with, on a thread of the rank: calls of different ranks overlap. All copies
/// of a stage must change theirs alike.
using GradientHook = std::function<void(const StepGradients&)>;

}  // namespace pipewright::exec
