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
  /// Gradients of `inputs`, which are leaves: one each, undefined where it requires none or the
  /// outputs do not depend on it. Frees all saved tensors that the weights' gradients do not need.
  /// `gradients`: one for each output, undefined where there is none; or nothing at all for
  /// scalars, whose gradients are then 1.
  Tensors input_gradients(const Tensors& outputs, const Tensors& gradients, const Tensors& inputs);

  /// Adds the gradients of all other leaves to their `.grad`. Afterwards the graph is spent.
  void weight_gradients();

 private:
  struct Reached;
  struct Listener;
  /// A node of the path that something branches off from, and the gradient that reached it. The
  /// node's hook holds the gradient alone: if it held the node as well, the graph would own itself.
  struct Remembered {
    std::shared_ptr<torch::autograd::Node> node;
    std::shared_ptr<Reached> reached;
  };

  std::vector<torch::autograd::Edge> roots_;  // off the path: left to the second half
  Tensors root_gradients_;
  std::vector<Remembered> remembered_;
};

/// The full backward: adds gradients to the `.grad` of every leaf, and frees saved tensors as it
/// passes them. `gradients` as above.
void full_backward(const Tensors& outputs, const Tensors& gradients);

}  // namespace pipewright::exec
