#pragma once

// The backward of one autograd graph in two halves, without repeating work. In the graph of two
// linear layers
//
//   input ◄── addmm ◄── relu ◄── addmm ◄── output
//              │ └ bias            │ └ bias
//              └── weight          └── weight
//
// the first half walks the nodes on a path from the output to the input and computes the gradients
// along it alone. Nodes of the path that parameters branch off from, here both addmm, remember the
// gradient that reached them. The second half starts from those and computes what hangs off the
// path. Each matrix product of the full backward is done once, by the same kernels: the gradients
// have the same bits.

#include <torch/csrc/autograd/edge.h>

#include <memory>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

class SplitBackward {
 public:
  /// Returns the gradients of `inputs`, which are leaves, one for each. An entry is undefined if
  /// the input requires no gradient or the outputs do not depend on it. Frees all saved tensors
  /// that the weights' gradients do not need. `gradients`: one for each output, undefined if it has
  /// none; or empty for scalar outputs, whose gradients are then 1.
  Tensors input_gradients(const Tensors& outputs, const Tensors& gradients, const Tensors& inputs);

  /// Adds the gradients of all other leaves to their `.grad`. The graph cannot be used afterwards.
  void weight_gradients();

 private:
  struct Reached;
  struct Listener;
  /// A node of the path from which something branches off, and the gradient that reached it. The
  /// node's hook holds only the gradient: if it held the node too, the graph would own itself.
  struct Remembered {
    std::shared_ptr<torch::autograd::Node> node;
    std::shared_ptr<Reached> reached;
  };

  std::vector<torch::autograd::Edge> roots_;  // off the path: for the second half
  Tensors root_gradients_;
  std::vector<Remembered> remembered_;
};

/// Computes the full backward: adds gradients to the `.grad` of every leaf, and frees saved tensors
/// on its way. `gradients`: as in `SplitBackward::input_gradients`.
void full_backward(const Tensors& outputs, const Tensors& gradients);

}  // namespace pipewright::exec
