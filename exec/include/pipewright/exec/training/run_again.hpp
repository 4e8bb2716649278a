#pragma once

// Selective activation recomputation within a layer.

#include <functional>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// Returns `work(inputs)`. Saves only the inputs: the backward runs `work` again, with the same
/// bits. `work` must have no parameters of its own and use no random numbers.
at::Tensor run_again_in_backward(std::function<at::Tensor(const Tensors&)> work,
                                 const Tensors& inputs);

/// Does the same for work with several outputs and with parameters of its own; `parameters`: those
/// that are trained.
Tensors run_again_in_backward(std::function<Tensors(const Tensors&)> work, const Tensors& inputs,
                              const Tensors& parameters);

}  // namespace pipewright::exec
