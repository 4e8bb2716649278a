#pragma once

// Selective recomputation: what a layer computes of its activations, and does not keep.

#include <functional>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// `work(inputs)`, of which the inputs alone are kept: the backward runs it again, with the same
/// bits. `work` has no parameters of its own and draws no random numbers.
at::Tensor run_again_in_backward(std::function<at::Tensor(const Tensors&)> work,
                                 const Tensors& inputs);

}  // namespace pipewright::exec
