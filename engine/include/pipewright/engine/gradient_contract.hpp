#pragma once

// Checks that a plan computes its model's gradients correctly. A small batch runs through an engine
// in double precision: once per microbatch with only that microbatch's loss, and once with all of
// them as weighted in the batch. The gradients that each rank is about to step with are compared
// with plain backwards of the whole model, layer by layer.

#include <string>
#include <vector>

#include "pipewright/engine/engine.hpp"

namespace pipewright::engine {

/// A gradient that is wrong.
struct GradientFault {
  int rank = 0;  // in the job; -1: no rank steps with it
  int stage = 0;
  std::string layer;      // for a tied parameter, the first layer with its key
  std::string parameter;  // its name in the layer
  /// Indices in the batch of the microbatches whose loss gives a wrong gradient. Empty: only the
  /// gradient of the whole batch is wrong, while each single microbatch's is right.
  std::vector<int> microbatches;
  /// Factor of the expected gradient that was found: 0 if it was lost, 2 if it was counted twice.
  double factor = 0;
  /// True if the gradient also contains a component unrelated to the expected one.
  bool is_mixed = false;
  friend bool operator==(const GradientFault&, const GradientFault&) = default;
};

struct GradientContract {
  int microbatches = 0;  // in the batch
  int checked = 0;       // number of gradients checked: each parameter on each rank of this process
  /// Sorted by rank, stage and parameter.
  std::vector<GradientFault> faults;
  bool holds() const { return faults.empty(); }
};

/// Returns one line per fault, or a line that says that all gradients are right.
std::string to_string(const GradientContract& contract);

/// Checks the gradients of a training with these `options`: its schedule or Program, sharding,
/// gradient groups, transport and hook. Precision, loss scale, clipping and optimizer are ignored.
/// `data` provides one batch. Every process of a job must make the same call and reports on its own
/// ranks. `tolerance` is relative to the gradient's norm. Throws InputError if the engine does, if
/// the data ends early, and under tensor or expert parallelism, where no rank has a layer's whole
/// gradient.
GradientContract gradient_contract(const PipelineModule& module, EngineOptions options,
                                   exec::BatchSource data, double tolerance = 1e-9);

}  // namespace pipewright::engine
