#pragma once

// Whether a plan computes the gradients of its model: a small batch runs through an engine in
// double precision, once for each microbatch with that one's loss alone, and once with all of them
// as they count. What each rank is about to step with is held against plain backwards of the whole
// model, layer behind layer.

#include <string>
#include <vector>

#include "pipewright/engine/engine.hpp"

namespace pipewright::engine {

/// A gradient that is not what it should be.
struct GradientFault {
  int rank = 0;  // of the job; -1: no rank steps with it
  int stage = 0;
  std::string layer;      // of a tied parameter the first with its key
  std::string parameter;  // its name in the layer
  /// Of the batch: those whose loss gives a wrong gradient. None: the batch as a whole does, though
  /// each microbatch by itself does not.
  std::vector<int> microbatches;
  /// How much of the right gradient is in it: 0 where it was lost, 2 where it counts twice.
  double factor = 0;
  /// Whether it has something else beside that.
  bool is_mixed = false;
  friend bool operator==(const GradientFault&, const GradientFault&) = default;
};

struct GradientContract {
  int microbatches = 0;  // of the batch
  int checked = 0;       // gradients: of each parameter on each rank of this process
  /// By rank, stage and parameter.
  std::vector<GradientFault> faults;
  bool holds() const { return faults.empty(); }
};

/// A line for each fault, or one that says that all gradients are right.
std::string to_string(const GradientContract& contract);

/// `options` are those of the training: its schedule or Program, sharding, groups, transport and
/// hook. Precision, loss scale, clipping and the optimizer are not looked at. `data` gives one
/// batch. Every process of a job calls it alike, and tells of its own ranks. `tolerance`: of a
/// gradient, as a part of its length. Throws InputError where the engine does, where the data end
/// early, and where shards or pipelines share out layers, whose gradients no rank has whole.
GradientContract gradient_contract(const PipelineModule& module, EngineOptions options,
                                   exec::BatchSource data, double tolerance = 1e-9);

}  // namespace pipewright::engine
