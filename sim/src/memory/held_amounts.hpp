#pragma once

// The sizes of a rank's memory: which bytes of a stage's costs they are, and who owns them. Each is
// a row of one table.

#include <cstdint>

#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/structure/step_costs.hpp"

namespace pipewright::sim {

/// A number of bytes of one stage and microbatch.
enum class Amount : std::uint8_t {
  Loaded,
  Activation,
  ActivationOfInputGradient,   // the part of it that the input gradient frees
  ActivationOfWeightGradient,  // … that the weight gradient frees
  OutputAlone,                 // the rest, if the next stage's weight gradient does not need it
  OutputAloneForWeights,       // … if it does
  ActivationLessOutput,
  Output,
  OutputForInputGradient,  // if the next stage's weight gradient does not need it
  OutputForWeights,        // … if it does
  ForwardTransient,        // the most that a forward needs in addition to what it keeps
  BackwardTransient,       // … that a backward needs
  InputGradientTransient,
  WeightGradientTransient,
  // With recomputation of a microbatch:
  RerunKept,  // kept by its forward in addition to the output
  RerunForwardTransient,
  RemadeOfInputGradient,   // recomputed by R and freed by the input gradient, including the output
  RemadeOfWeightGradient,  // … and freed later
  RerunTransient,          // the most that R needs in addition to what it recomputes
  RerunBackwardTransient,
  RerunInputGradientTransient,
  RerunForWeights,  // recomputed by an input gradient for the weight gradient
  GradientsForWeights,
  InputGradient,               // for the previous stage
  InputGradientOfInput,        // … if its weight gradient does not need it
  InputGradientForWeights,     // … if its weight gradient needs it
  ReceivedActivation,          // as large as the previous stage sends it
  ReceivedGradient,            // as large as the next stage sends it, if W does not need it
  ReceivedGradientForWeights,  // … if it does
  ParametersWhole,             // all-gathered, in addition to the own shard
  ParametersReceived,          // from the other replicas, if received data are copied
  GradientsWhole,              // of all the stage's parameters, until their reduce-scatter is done
  GradientsReceived,           // from the other replicas, if received data are copied
  GradientsAside,              // accumulated gradients set aside; many of this amount may end at
                               // one event
};

/// Returns the amount for a microbatch `length` times as long as the measured one. Sums of parts
/// are exact, because rounding is done before.
std::int64_t bytes_of(Amount amount, const StepCosts& costs, int stage, double length);
Owner owner_of(Amount amount);

/// Returns the bytes that a slot of a stage keeps permanently if its work is captured.
plan::Bytes slot_bytes(const StepCosts& costs, int stage, bool splits, bool reruns);

inline std::uint64_t bit_of(Amount amount) {
  return std::uint64_t{1} << static_cast<unsigned>(amount);
}

}  // namespace pipewright::sim
