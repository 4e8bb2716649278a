#pragma once

// What an instruction takes of a cost: the columns of instruction_traits that price it.

namespace pipewright::plan {

/// Which part of the time of a stage, or of a layer.
enum class Work {
  None,
  Load,
  Forward,
  Rerun,  // the forward, again
  InputGradient,
  WeightGradient,
  Backward,  // the last two in one go
  OptimizerStep,
};

/// Which bytes of a stage are moved.
enum class Payload {
  None,
  Activation,     // its output
  InputGradient,  // the gradient of its input
  Gradients,      // its parameters' gradients
  Parameters,
  Tied,     // gradients of a weight that stages share
  Numbers,  // a few, whose bytes are nothing
};

}  // namespace pipewright::plan
