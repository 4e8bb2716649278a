#pragma once

// The tensors that a stage keeps for one microbatch in flight, from its first instruction to its
// last.

#include <utility>
#include <vector>

#include "pipewright/exec/stage/split_backward.hpp"
#include "pipewright/exec/stage/stage_spec.hpp"

namespace pipewright::exec {

/// The autograd graph of a segment, which is consecutive layers from leaves to outputs.
struct SegmentGraph {
  Tensors inputs;   // leaves; their gradients are for the segment or the stage before
  Tensors outputs;  // roots of the graph; on the last stage the microbatch's loss
  SplitBackward split;
};

struct MicrobatchState {
  Tensors inputs;
  Tensors targets;  // last stage
  NamedTensors keywords;
  double weight = 1;            // on the last stage: weight of its loss in the batch's
  plan::Instruction forward{};  // has the stage, microbatch and slot
  BackwardKind backward{};      // of the backward that follows the forward
  std::vector<SegmentGraph> segments;
  Tensors outputs;           // until the next stage takes them
  Tensors weights;           // of its forward, if they may change before its backward
  Tensors output_gradients;  // from the next stage; on the last stage, of the loss
  Tensors input_gradients;

  /// Ends the backward. The input's gradients stay until the previous stage takes them.
  void drop_activations() {
    Tensors gradients = std::move(input_gradients);
    *this = MicrobatchState();
    input_gradients = std::move(gradients);
  }
};

/// Weight stashing (PipeDream, SOSP 2019): during its lifetime, parameters have the values that a
/// microbatch's forward used. Does nothing without `weights`.
class StashedWeights {
 public:
  StashedWeights(const std::vector<at::Tensor>& parameters, const Tensors& weights)
      : parameters_(parameters) {
    if (!weights.empty())
      newest_ = stash(parameters);
    set(weights);
  }
  ~StashedWeights() { set(newest_); }
  StashedWeights(const StashedWeights&) = delete;
  StashedWeights& operator=(const StashedWeights&) = delete;

  /// Returns the parameters' present memory, which an asynchronous step leaves unchanged.
  static Tensors stash(const std::vector<at::Tensor>& parameters) {
    Tensors weights;
    for (const at::Tensor& parameter : parameters)
      weights.push_back(parameter.variable_data());
    return weights;
  }

 private:
  void set(const Tensors& values) {
    for (std::size_t p = 0; p < values.size(); ++p)
      parameters_[p].set_data(values[p]);
  }

  const std::vector<at::Tensor>& parameters_;
  Tensors newest_;
};

}  // namespace pipewright::exec
