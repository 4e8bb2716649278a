#pragma once

// Parts of a cost that an instruction uses: the columns of instruction_traits that determine its
// time and bytes.

namespace pipewright::plan {

/// Part of the time of a stage or layer.
enum class Work {
  None,
  Load,
  Forward,
  Rerun,  // recomputation of the forward
  InputGradient,
  WeightGradient,
  Backward,  // the last two, unsplit
  OptimizerStep,
};

/// Bytes that a stage's instruction moves.
enum class Payload {
  None,
  Activation,     // the stage's output
  InputGradient,  // the gradient of its input
  Gradients,      // of the stage's parameters
  Parameters,
  Tied,     // gradients of a weight that several stages share
  Numbers,  // a few numbers, which count as zero bytes
};

}  // namespace pipewright::plan
