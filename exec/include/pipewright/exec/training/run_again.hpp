#pragma once

// Activation recomputation (checkpointing) of a part of a layer, for selective recomputation.

#include <functional>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// Returns `work(inputs)`. Autograd saves only the inputs, and the backward runs `work` again,
/// which gives the same bits. `work` must not use parameters or random numbers.
at::Tensor recompute_in_backward(std::function<at::Tensor(const Tensors&)> work,
                                 const Tensors& inputs);

/// Does the same for work with several outputs that also uses parameters. `parameters`: the trained
/// ones among them.
Tensors recompute_in_backward(std::function<Tensors(const Tensors&)> work, const Tensors& inputs,
                              const Tensors& parameters);

}  // namespace pipewright::exec
