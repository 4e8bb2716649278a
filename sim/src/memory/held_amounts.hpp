#pragma once

// The sizes of what a rank holds: how many bytes of a stage's costs, and whose they are. Each is a
// row of one table.

#include <cstdint>

#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/structure/step_costs.hpp"

namespace pipewright::sim {

/// How many bytes, of one stage and microbatch.
enum class Amount : std::uint8_t {
  Loaded,
  Activation,
  ActivationOfInputGradient,   // its part that the input gradient frees
  ActivationOfWeightGradient,  // … the weight gradient
  OutputAlone,                 // the rest, if the weight gradient after does not need it
  OutputAloneForWeights,       // … if it does
  ActivationLessOutput,
  Output,
  OutputForInputGradient,  // if the weight gradient after does not need it
  OutputForWeights,        // … if it does
  ForwardTransient,        // most that a forward needs beside what it keeps
  BackwardTransient,       // … a backward
  InputGradientTransient,
  WeightGradientTransient,
  // Where a microbatch runs again:
  RerunKept,  // by its forward, beside the output
  RerunForwardTransient,
  RemadeOfInputGradient,   // what R makes and the input gradient frees, the output with it
  RemadeOfWeightGradient,  // … the rest
  RerunTransient,          // most that R needs beside what it makes
  RerunBackwardTransient,
  RerunInputGradientTransient,
  RerunForWeights,  // what an input gradient makes again for the weight gradient
  GradientsForWeights,
  InputGradient,               // made for the stage before
  InputGradientOfInput,        // … whose weight gradient does not need it
  InputGradientForWeights,     // … does
  ReceivedActivation,          // as large as the stage before sends it
  ReceivedGradient,            // as large as the stage after makes it, if W does not need it
  ReceivedGradientForWeights,  // … if it does
  ParametersWhole,             // gathered, beside the own shard
  ParametersReceived,          // from the other copies, where they are copied
  GradientsWhole,              // of all the stage's parameters, until their sum over copies is made
  GradientsReceived,           // from the other copies, where they are copied
  GradientsAside,              // those that stand; the only amount that many share an end of
};

/// The amount for a microbatch `length` times as long as the one that was measured. Sums of parts
/// are exact: rounding is done before.
std::int64_t bytes_of(Amount amount, const StepCosts& costs, int stage, double length);
Owner owner_of(Amount amount);

/// What a slot of a stage keeps for good where its work is captured.
plan::Bytes slot_bytes(const StepCosts& costs, int stage, bool splits, bool reruns);

inline std::uint64_t bit_of(Amount amount) {
  return std::uint64_t{1} << static_cast<unsigned>(amount);
}

}  // namespace pipewright::sim
